/** The ERC-8004 identity registry: agents numbered from 0 or 1, each with the address of its registration file. */
import type { PluginContext } from 'tollgate/plugin'
import { createPage, EMPTY, type Kind, type Page, type Protocol, SourceError } from '../listing.ts'
import { nameOf, textOf } from '../listing-fields.ts'
import { isRow, listOf, type Row, rowOf } from '../../lib/feeds/payloads.ts'
import { canonicalAddress } from '../public-addresses.ts'
import type { Visitor } from '../visits.ts'

const ABI = [
  {
    type: 'function',
    name: 'tokenURI',
    stateMutability: 'view',
    inputs: [{ name: 'agentId', type: 'uint256' }],
    outputs: [{ name: '', type: 'string' }],
  },
] as const
/** Loaded only where the registry is read: it takes a fifth of a second. */
const loadCoder = () => import('viem/utils')
type Coder = Awaited<ReturnType<typeof loadCoder>>
const AT_ONCE = 50
const LONGEST_URI = 200_000
const DATA = /^data:application\/json(?:;charset=[\w-]+)?(;base64)?,/i

export interface Identity {
  /** JSON-RPC address from the operator's settings. */
  readonly rpcUrl: string
  readonly registry: `0x${string}`
  /** CAIP-2. */
  readonly network: string
}

/**
 * Yields a page per fifty agents, until fifty in a row do not exist. Files are read from the chain itself (`data:`) or
 * visited like any other untrusted address. Files elsewhere (IPFS) are counted and skipped. Throws SourceError.
 */
export async function* agentsOf(
  { rpcUrl, registry, network }: Identity,
  get: PluginContext['fetch'],
  visit: Visitor,
  signal: AbortSignal,
): AsyncGenerator<Page> {
  for (let first = 0; ; first += AT_ONCE) {
    const uris = await urisOf(rpcUrl, registry, first, get, signal)
    const found = uris.flatMap((uri, at) => (uri === null ? [] : [{ uri, id: first + at }]))
    if (found.length === 0) return
    const read = found.map(async ({ uri, id }) => {
      const file = await fileAt(uri, visit, signal)
      const page = file.failure === null ? readRegistration(file.payload, `${network}:${registry}:${id}`) : null
      return page ?? { listings: [], dropped: { [file.failure ?? 'malformed']: 1 }, rows: 1 }
    })
    for (const page of await Promise.all(read)) yield page
  }
}

/** Null for an agent that does not exist: the call reverts. Throws SourceError if the chain does not say for each. */
async function urisOf(
  rpcUrl: string,
  registry: `0x${string}`,
  first: number,
  get: PluginContext['fetch'],
  signal: AbortSignal,
): Promise<(string | null)[]> {
  const coder = await loadCoder()
  const calls = Array.from({ length: AT_ONCE }, (_, at) => ({
    jsonrpc: '2.0',
    id: at,
    method: 'eth_call',
    params: [{ to: registry, data: dataOf(coder, first + at) }, 'latest'],
  }))
  const headers = { 'content-type': 'application/json' }
  const response = await get(rpcUrl, {
    method: 'POST',
    headers,
    body: JSON.stringify(calls),
    signal,
    redirect: 'manual',
  })
  const answers: unknown = response.ok ? await response.json().catch(() => null) : null
  if (!Array.isArray(answers)) throw new SourceError(`the chain answered ${response.status}`)
  const byId = new Map(answers.filter(isRow).map((answer) => [answer['id'], answer]))
  return calls.map(({ id }) => uriIn(coder, byId.get(id)))
}

/** What nodes say of a call that reverts, beside the code 3 of Geth. Any other error says nothing about the agent. */
const REVERTED = /revert/i

function isReverted(error: Row): boolean {
  return error['code'] === 3 || [error['message'], error['data']].some((text) => REVERTED.test(textOf(text) ?? ''))
}

function dataOf({ encodeFunctionData }: Coder, agent: number): string {
  return encodeFunctionData({ abi: ABI, functionName: 'tokenURI', args: [BigInt(agent)] })
}

/** The address in an answer. Null for an agent that does not exist, or whose address cannot be read. */
function uriIn({ decodeFunctionResult }: Coder, answer: Row | undefined): string | null {
  if (isRow(answer?.['error'])) {
    if (isReverted(answer['error'])) return null
    throw new SourceError(`the chain answered the error ${Number(answer['error']['code'])}`)
  }
  const result = answer?.['result']
  if (typeof result !== 'string') throw new SourceError('the chain did not answer every call')
  if (result === '0x') throw new SourceError('there is no registry at this address')
  if (!/^0x[0-9a-f]+$/i.test(result)) return null
  try {
    const uri = decodeFunctionResult({ abi: ABI, functionName: 'tokenURI', data: result as `0x${string}` })
    return uri.length > LONGEST_URI ? null : uri
  } catch {
    return null
  }
}

/** A registration file, or why there is none. */
type File =
  | { readonly failure: null; readonly payload: unknown }
  | { readonly failure: 'scheme' | 'refused' | 'unreachable' | 'malformed' }

async function fileAt(uri: string, visit: Visitor, signal: AbortSignal): Promise<File> {
  const inline = DATA.exec(uri)
  if (inline) {
    const text = uri.slice(inline[0].length)
    return parsed(() => (inline[1] ? Buffer.from(text, 'base64').toString() : decodeURIComponent(text)))
  }
  if (!/^https?:/i.test(uri)) return { failure: 'scheme' }
  const seen = await visit(uri, 'GET', signal)
  if (seen.failure !== null) return { failure: seen.failure }
  return seen.status === 200 ? parsed(() => seen.body) : { failure: 'unreachable' }
}

function parsed(text: () => string): File {
  try {
    return { failure: null, payload: JSON.parse(text()) as unknown }
  } catch {
    return { failure: 'malformed' }
  }
}

/** A service of an agent that can be called. */
interface Called {
  readonly kind: Kind
  readonly protocols: readonly Protocol[]
}

/** Kinds of services, by their name in a registration. */
const CALLED: Readonly<Record<string, Called>> = {
  mcp: { kind: 'mcp_server', protocols: ['mcp'] },
  a2a: { kind: 'a2a_agent', protocols: ['a2a'] },
}
const WEB: Called = { kind: 'http_endpoint', protocols: [] }
const MOST_SERVICES = 20

/**
 * Reads an ERC-8004 registration file: one agent with its services. MCP and A2A services are listed, and web services if
 * the agent states that it accepts x402 payments. Names, wallets and mail addresses are not services. Returns null for
 * any other document.
 *
 * Source: ERC-8004, "Agent URI and agent registration file".
 *
 * @param agent The registry and number under which it was found. Default: what the file states.
 */
export function readRegistration(payload: unknown, agent: string | null = null): Page | null {
  if (!isRow(payload) || !/eip-8004#registration-v\d+$/.test(textOf(payload['type']) ?? '')) return null
  const page = createPage()
  // Drafts of the standard had `endpoints`.
  const services = listOf(payload['services'] ?? payload['endpoints'])
    .slice(0, MOST_SERVICES)
    .map(rowOf)
  for (const service of payload['active'] === false ? [] : services) {
    const name = (nameOf(service['name']) ?? '').toLowerCase()
    const isPaid = payload['x402Support'] === true || payload['x402support'] === true
    const called = CALLED[name] ?? (isPaid && name === 'web' ? WEB : undefined)
    if (!called) continue
    const address = canonicalAddress(service['endpoint'])
    if (address.reason !== null) {
      page.drop(address.reason)
      continue
    }
    page.add({
      ...EMPTY,
      url: address.url,
      isTemplate: address.isTemplate,
      kind: called.kind,
      name: nameOf(payload['name']),
      description: textOf(payload['description']),
      protocols: isPaid ? [...called.protocols, 'x402'] : called.protocols,
      version: nameOf(service['version']),
      erc8004: agent ?? agentOf(rowOf(listOf(payload['registrations'])[0])),
    })
  }
  if (payload['active'] === false) page.drop('inactive')
  return page.end(Math.max(1, services.length))
}

/** The agent that a file states, "eip155:8453:0x8004…:22". Null if it states none or still has the placeholders of the template. */
function agentOf(registration: Row): string | null {
  const [registry, id] = [nameOf(registration['agentRegistry']), registration['agentId']]
  if (registry === null || !/^[a-z0-9]+:\d+:0x[0-9a-fA-F]{40}$/.test(registry)) return null
  // A number that JavaScript has rounded is not the agent's.
  const isValid = typeof id === 'string' ? /^\d{1,78}$/.test(id) : Number.isSafeInteger(id) && Number(id) >= 0
  return isValid ? `${registry}:${String(id)}` : null
}
