/** The ERC-8004 identity registry: agents numbered from 0 or 1, each with the address of its registration file. */
import type { PluginContext } from 'tollgate/plugin'
import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem'
import { SourceError } from '../fault.ts'
import type { Page } from '../listing.ts'
import { isRow } from '../reading.ts'
import type { Visitor } from '../visit.ts'
import { readRegistration } from './registration.ts'

const ABI = parseAbi(['function tokenURI(uint256 agentId) view returns (string)'])
const AT_ONCE = 50
const LONGEST_URI = 200_000
const DATA = /^data:application\/json(?:;charset=[\w-]+)?(;base64)?,/i

export interface Identity {
  /** JSON-RPC address, the operator's own choice. */
  readonly rpcUrl: string
  readonly registry: `0x${string}`
  /** CAIP-2. */
  readonly network: string
}

/**
 * One page for every fifty agents, until fifty in a row are not there. Files are read from the chain itself (`data:`) or
 * visited like every other address of a stranger; those that lie elsewhere (IPFS) are counted and left. Throws
 * SourceError.
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
      const payload = await fileAt(uri, visit, signal)
      if (payload === 'elsewhere') return { listings: [], dropped: { scheme: 1 }, rows: 1 }
      const page = readRegistration(payload, `${network}:${registry}:${id}`)
      return page ?? { listings: [], dropped: { malformed: 1 }, rows: 1 }
    })
    for (const page of await Promise.all(read)) yield page
  }
}

/** Null for an agent that is not there: the call reverts. */
async function urisOf(
  rpcUrl: string,
  registry: `0x${string}`,
  first: number,
  get: PluginContext['fetch'],
  signal: AbortSignal,
): Promise<(string | null)[]> {
  const calls = Array.from({ length: AT_ONCE }, (_, at) => ({
    jsonrpc: '2.0',
    id: at,
    method: 'eth_call',
    params: [{ to: registry, data: dataOf(first + at) }, 'latest'],
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
  const results = new Map(answers.filter(isRow).map(({ id, result }) => [id, result]))
  return calls.map(({ id }) => uriIn(results.get(id)))
}

function dataOf(agent: number): string {
  return encodeFunctionData({ abi: ABI, functionName: 'tokenURI', args: [BigInt(agent)] })
}

function uriIn(result: unknown): string | null {
  if (typeof result !== 'string' || !/^0x[0-9a-f]+$/i.test(result)) return null
  try {
    const uri = decodeFunctionResult({ abi: ABI, functionName: 'tokenURI', data: result as `0x${string}` })
    return uri.length > LONGEST_URI ? null : uri
  } catch {
    return null
  }
}

async function fileAt(uri: string, visit: Visitor, signal: AbortSignal): Promise<unknown> {
  const inline = DATA.exec(uri)
  if (!inline && !/^https?:/i.test(uri)) return 'elsewhere'
  try {
    if (inline) {
      const text = uri.slice(inline[0].length)
      return JSON.parse(inline[1] ? Buffer.from(text, 'base64').toString() : decodeURIComponent(text)) as unknown
    }
    const seen = await visit(uri, 'GET', signal)
    return seen.failure === null && seen.status === 200 ? (JSON.parse(seen.body) as unknown) : null
  } catch (error) {
    if (signal.aborted) throw error
    return null
  }
}
