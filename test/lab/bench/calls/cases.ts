/** Cases of `npm run lab -- bench`: their requests and the answers expected. */
import { request } from 'node:http'
import { LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js'
import { readRequirement, type Requirement } from '../../../../gateway/client/payment.ts'
import { type Expected, requestBytes } from './load.ts'
import { createBuyer, forge, headerOf, newWallets, requirementOf } from './payments.ts'
import { NETWORK, PAY_TO, type PreparedAnswer, type Server, type Servers } from './servers.ts'

/** The name of a server: a baseline, or a gateway by the size of its journal. */
type ServerName = 'plain' | 'express' | 'x402' | 'x402 with facilitator' | 'gateway' | 'gateway 10^3' | 'gateway 10^6'

type Fields = Readonly<Record<string, unknown>>

/** Requests of a case. `paid`: each carries a payment of its own. */
interface Sent {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly message?: { readonly method: string; readonly params?: Fields }
  readonly isPaid?: true
  readonly needsToken?: true
  /** End of the path of the nth request, if no two requests ask for the same. */
  readonly endOf?: (nth: number) => string
}

interface CaseDefinition extends Sent {
  readonly name: string
  readonly server: ServerName
  readonly expected: Expected
  /** The case of `@x402/express` that it is compared with. */
  readonly peer?: string
  /** Also measures node:http with the same answer. */
  readonly hasTwin?: true
}

/** A case whose server runs. */
export interface Case {
  readonly name: string
  readonly server: Server
  readonly expected: Expected
  readonly isPaid: boolean
  /** The names of the cases that it is compared with. */
  readonly plain: string
  readonly peer: string | null
  /** Prepares the requests of one measurement. `count` limits them if each can be sent only once. */
  prepare(count: number): () => Buffer | null
}

export const PLAIN = 'plain: small JSON'
const X402_UNPAID = 'x402: 402'
const X402_PAID = 'x402: paid, check in process'
const X402_FREE = 'x402: free JSON'

const SMALL = '/v1/regime/current'
const HISTORY = '/v1/regime/history'
/** A thousand minutes that are over: the page of the newest minutes lacks the one that is being computed. */
const PAGE = `${HISTORY}?limit=1000&start=${new Date(Date.now() - 2 * 86_400_000).toISOString()}`
/** Pages of a thousand minutes that each begin another minute, from a hundred days ago on. */
const startOf = (nth: number): string =>
  `&start=${new Date(Date.now() - 100 * 86_400_000 + nth * 60_000).toISOString()}`
const SETTLED: Expected = { status: 200, contains: '"x402/payment-response":{"success":true' }

const current = (meta?: Fields): Sent['message'] => ({
  method: 'tools/call',
  params: { name: 'get_regime_current', arguments: {}, ...(meta ? { _meta: meta } : {}) },
})
const clientInfo = { name: 'bench', version: '1' }
const initialize = {
  method: 'initialize',
  params: { protocolVersion: LATEST_PROTOCOL_VERSION, capabilities: {}, clientInfo },
}

const on = (server: ServerName, status: number, sent: Sent, contains?: string) => ({
  ...sent,
  server,
  expected: { status, ...(contains === undefined ? {} : { contains }) },
})
const mcp = (message: Sent['message'], expected: Expected, isPaid?: true) => ({
  path: '/mcp',
  server: 'gateway' as const,
  ...(message ? { message } : {}),
  expected,
  ...(isPaid ? { isPaid } : {}),
})

const BASELINES: readonly CaseDefinition[] = [
  { name: PLAIN, ...on('plain', 200, { path: '/small' }) },
  { name: 'express: small JSON', ...on('express', 200, { path: '/answer' }) },
  { name: X402_FREE, ...on('x402', 200, { path: '/free' }) },
  { name: X402_UNPAID, ...on('x402', 402, { path: '/answer' }) },
  { name: 'x402: 402 with a query', ...on('x402', 402, { path: '/answer?limit=10' }) },
  { name: X402_PAID, ...on('x402', 200, { path: '/answer', isPaid: true }) },
  { name: 'x402: paid, facilitator stub', ...on('x402 with facilitator', 200, { path: '/answer', isPaid: true }) },
]

const PATHS: readonly CaseDefinition[] = [
  { name: '402', ...on('gateway', 402, { path: SMALL }), peer: X402_UNPAID, hasTwin: true },
  {
    name: '402 with a query',
    ...on('gateway', 402, { path: `${HISTORY}?limit=10` }),
    peer: 'x402: 402 with a query',
    hasTwin: true,
  },
  { name: 'free: /v1/x', ...on('gateway', 200, { path: '/v1/x' }), peer: X402_FREE, hasTwin: true },
  { name: 'free: /health', ...on('gateway', 200, { path: '/health' }), peer: X402_FREE, hasTwin: true },
  { name: 'free: sample', ...on('gateway', 200, { path: '/v1/regime/sample' }), peer: X402_FREE, hasTwin: true },
  { name: 'document: /pricing.json', ...on('gateway', 200, { path: '/pricing.json' }), hasTwin: true },
  {
    name: 'page: /pricing',
    ...on('gateway', 200, { path: '/pricing', headers: { accept: 'text/html' } }, '</html>'),
    hasTwin: true,
  },
  { name: 'token: live', ...on('gateway', 200, { path: '/v1/potus/live', needsToken: true }), hasTwin: true },
  { name: 'token: feeds', ...on('gateway', 200, { path: '/v1/potus/feeds', needsToken: true }), hasTwin: true },
  { name: 'paid', ...on('gateway', 200, { path: SMALL, isPaid: true }), peer: X402_PAID },
  {
    name: 'paid: 1,000 rows of history',
    ...on('gateway', 200, { path: PAGE, isPaid: true }, '"count":1000'),
    peer: X402_PAID,
  },
  {
    name: 'paid: 1,000 rows that nobody bought before',
    ...on('gateway', 200, { path: `${HISTORY}?limit=1000`, endOf: startOf, isPaid: true }, '"count":1000'),
    peer: X402_PAID,
  },
  { name: 'paid: journal of 10^3', ...on('gateway 10^3', 200, { path: SMALL, isPaid: true }), peer: X402_PAID },
  { name: 'paid: journal of 10^6', ...on('gateway 10^6', 200, { path: SMALL, isPaid: true }), peer: X402_PAID },
  {
    name: 'mcp: unpaid tools/call',
    ...mcp(current(), { status: 200, contains: '"code":"payment_required"' }),
    peer: X402_UNPAID,
  },
  { name: 'mcp: paid tools/call', ...mcp(current(), SETTLED, true), peer: X402_PAID },
  {
    name: 'mcp: free tools/call',
    ...mcp({ method: 'tools/call', params: { name: 'get_regime_sample', arguments: {} } }, { status: 200 }),
    peer: X402_FREE,
  },
  { name: 'mcp: tools/list', ...mcp({ method: 'tools/list' }, { status: 200, contains: 'get_regime_current' }) },
  { name: 'mcp: ping', ...mcp({ method: 'ping' }, { status: 200, contains: '"result":{}' }) },
  { name: 'mcp: initialize', ...mcp(initialize, { status: 200, contains: '"serverInfo"' }) },
]

const twinOf = (name: string): string => `plain: ${name}`

/**
 * Starts the servers that the chosen cases need and returns the cases, the baselines first.
 *
 * @param only beginnings of names, or of what follows a colon in them; empty: all cases
 */
export async function openCases(servers: Servers, only: readonly string[]): Promise<readonly Case[]> {
  const isChosen = ({ name }: { readonly name: string }): boolean =>
    only.length === 0 || name === PLAIN || only.some((part) => name.startsWith(part) || name.includes(`: ${part}`))
  const paths = PATHS.filter(isChosen)
  const twins = paths
    .filter(({ hasTwin }) => hasTwin)
    .map((path): CaseDefinition => ({ ...path, name: twinOf(path.name), server: 'plain' }))
  const baselines = BASELINES.filter(isChosen)
  const definitions = [...baselines.slice(0, 1), ...twins, ...baselines.slice(1), ...paths]
  const running = await startServers(servers, definitions, twins)
  const token = definitions.some(({ needsToken }) => needsToken) ? await buyToken(running('gateway')) : null
  const wallets = newWallets(1_000)
  return Promise.all(
    definitions.map(async (definition) => {
      const { name, expected, peer, hasTwin } = definition
      const server = running(definition.server)
      const buyer = definition.isPaid ? createBuyer(wallets, await requirementOfCase(server, definition)) : null
      if (buyer && definition.server !== 'x402 with facilitator')
        await assertRefused(server, definition, forge(buyer()))
      return {
        name,
        server,
        expected,
        isPaid: definition.isPaid === true,
        plain: hasTwin ? twinOf(definition.server === 'plain' ? name.slice(twinOf('').length) : name) : PLAIN,
        peer: peer ?? null,
        prepare: preparation(server, withToken(definition, token), buyer),
      }
    }),
  )
}

/** Starts each server that a case needs. The gateways start one after the other, because each first computes history. */
async function startServers(
  servers: Servers,
  definitions: readonly CaseDefinition[],
  twins: readonly CaseDefinition[],
): Promise<(name: ServerName) => Server> {
  const needed = new Set(definitions.map(({ server }) => server))
  const started = new Map<ServerName, Server>()
  // The plain server repeats answers of the gateway, and the small JSON of all baselines is one of them.
  started.set('gateway', await servers.startGateway('gateway', 0))
  for (const [name, rows] of [
    ['gateway 10^3', 1_000],
    ['gateway 10^6', 1_000_000],
  ] as const)
    if (needed.has(name)) started.set(name, await servers.startGateway(name.replace(' ', '-'), rows))
  const gateway = started.get('gateway') as Server
  const token = twins.some(({ needsToken }) => needsToken) ? await buyToken(gateway) : null
  const sample = await answerOf(gateway, { path: '/v1/regime/sample' })
  const small = { ...sample, path: '/small', headers: { 'content-type': 'application/json' } }
  const answers = await Promise.all(twins.map((twin) => answerOf(gateway, withToken(twin, token))))
  started.set('plain', await servers.startPlain([small, ...answers]))
  const answer: unknown = JSON.parse(Buffer.from(sample.body, 'base64').toString())
  if (needed.has('express')) started.set('express', await servers.startBaseline('express', { answer }))
  const x402 = { network: NETWORK, payTo: PAY_TO, price: '$0.005', answer }
  if (needed.has('x402')) started.set('x402', await servers.startBaseline('x402', x402))
  if (needed.has('x402 with facilitator')) {
    const { url } = await servers.startBaseline('facilitator', x402)
    started.set('x402 with facilitator', await servers.startBaseline('x402', { ...x402, facilitator: url }))
  }
  return (name) => started.get(name) as Server
}

function withToken<One extends Sent>(sent: One, token: string | null): One {
  return sent.needsToken && token !== null ? { ...sent, headers: { ...sent.headers, 'x-service-token': token } } : sent
}

function preparation(server: Server, sent: Sent, buyer: (() => object) | null): Case['prepare'] {
  if (buyer === null) {
    const bytes = bytesOf(server, sent)
    return () => () => bytes
  }
  const { path, endOf } = sent
  let nth = 0
  return (count) => {
    const requests = Array.from({ length: count }, () =>
      bytesOf(server, endOf ? { ...sent, path: path + endOf(nth++) } : sent, buyer()),
    )
    return () => requests.pop() ?? null
  }
}

const MCP_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': LATEST_PROTOCOL_VERSION,
}

/** The bytes of a request, over HTTP with the payment in its header, over MCP with it in `_meta`. */
function bytesOf({ port }: Server, { path, headers, message }: Sent, payment?: object): Buffer {
  if (message) {
    const meta = payment ? { _meta: { 'x402/payment': payment } } : {}
    const params = payment ? { ...message.params, ...meta } : message.params
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: message.method, ...(params ? { params } : {}) })
    return requestBytes(port, 'POST', path, MCP_HEADERS, body)
  }
  const paid = payment ? { 'payment-signature': headerOf(payment) } : {}
  return requestBytes(port, 'GET', path, { accept: 'application/json', ...headers, ...paid })
}

/** Reads what the server asks for an unpaid request. */
async function requirementOfCase({ url }: Server, { path, message }: Sent): Promise<Requirement> {
  if (!message) return requirementOf(url + path)
  const { structuredContent } = await callTool(url, message)
  return readRequirement(Buffer.from(JSON.stringify(structuredContent)).toString('base64'), '', false)
}

async function callTool(url: string, message: NonNullable<Sent['message']>, payment?: object): Promise<Fields> {
  const params = { ...message.params, ...(payment ? { _meta: { 'x402/payment': payment } } : {}) }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: message.method, params })
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers: MCP_HEADERS, body })
  return ((await response.json()) as { readonly result: Fields }).result
}

/** Throws if the server accepts a payment that nobody signed: then it would not check what we measure. */
async function assertRefused({ url }: Server, { name, path, message }: CaseDefinition, forged: object): Promise<void> {
  const isRefused = message
    ? (await callTool(url, message, forged))['isError'] === true
    : (await fetch(url + path, { headers: { 'payment-signature': headerOf(forged) } })).status === 402
  if (!isRefused) throw new Error(`${name}: the server accepted a payment with a forged signature`)
}

/** Buys the plan of 24 hours and returns its access token. */
async function buyToken({ url }: Server): Promise<string> {
  const address = `${url}/v1/potus/subscribe/live/24h`
  const payment = headerOf(createBuyer(newWallets(1), await requirementOf(address, 'POST'))())
  const response = await fetch(address, { method: 'POST', headers: { 'payment-signature': payment } })
  const { token } = (await response.json()) as { readonly token?: unknown }
  if (typeof token !== 'string') throw new Error(`the purchase of a plan answered ${response.status}`)
  return token
}

/** Set by node:http itself. */
const BY_CONNECTION = /^(date|connection|keep-alive|transfer-encoding|content-length)$/i

/** Takes an answer of the gateway with its headers, to be sent by the plain server. */
export function answerOf({ port }: Pick<Server, 'port'>, { path, headers = {} }: Sent): Promise<PreparedAnswer> {
  return new Promise((resolve, reject) => {
    const options = { port, path, headers: { accept: 'application/json', ...headers } }
    const outgoing = request(options, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('error', reject)
      response.on('end', () => {
        const body = Buffer.concat(pieces)
        const fields = Object.entries(response.headers)
          .filter(([name]) => !BY_CONNECTION.test(name))
          .map(([name, value]) => [name, String(value)])
        const all = { ...Object.fromEntries(fields), 'content-length': String(body.length) } as Record<string, string>
        resolve({ path, status: response.statusCode ?? 0, headers: all, body: body.toString('base64') })
      })
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}
