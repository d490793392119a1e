/**
 * Visits an untrusted address. The name is resolved once, all its addresses must be public, and the connection goes to
 * exactly the checked address. Each redirect passes the same checks. Time, bytes, redirects, ports and the rate of
 * requests to one network are limited.
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { timeoutSignal } from 'tollgate/plugin'
import { isPublic, isPrivateHost, networkPrefix } from './public-addresses.ts'

export type Method = 'GET' | 'POST'

export type Visit =
  | { readonly failure: null; readonly status: number; readonly body: string; readonly paymentRequired: string | null }
  | { readonly failure: 'refused' | 'unreachable'; readonly reason: string }

/** Resolves names and maps addresses to connections. Tests replace it with an internet of their own. */
export interface World {
  resolve(host: string): Promise<readonly string[]>
  /** Where to connect for a checked address; tests map it to a local server. */
  dial(address: string, port: number): { readonly address: string; readonly port: number }
}

/** The real internet. */
const INTERNET: World = {
  resolve: async (host) => (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address),
  dial: (address, port) => ({ address, port }),
}

export interface VisitLimits {
  /** Time limit of the whole visit, without waiting for its turn. */
  readonly milliseconds: number
  /** Longest body that is read; the rest is cut off. */
  readonly bytes: number
  readonly redirects: number
}

/** Limits of every visit in production. */
export const LIMITS: VisitLimits = { milliseconds: 10_000, bytes: 1024 * 1024, redirects: 3 }
const PORTS = new Set([80, 443, 8080, 8443])
const REDIRECTS = new Set([301, 302, 303, 307, 308])
const HEADERS = {
  'user-agent': 'tollgate/0.1 (directory)',
  accept: 'application/json, */*;q=0.1',
  'accept-encoding': 'identity',
}

/**
 * Visits one URL and returns its answer, or why there is none. `signal` ends the visit; the promise then rejects with the
 * signal's reason. Any other failure is a result, not an error.
 */
export type Visitor = (url: string, method: Method, signal: AbortSignal) => Promise<Visit>

/** Thrown for an address that must not be visited. */
class Refused extends Error {}

interface VisitParts {
  readonly world: World
  readonly limits: VisitLimits
  readonly pace: Pace
}

/** Creates a visitor. Tests pass an internet, limits and a pace of their own. */
export function createVisitor(
  world: World = INTERNET,
  limits: VisitLimits = LIMITS,
  pace: Pace = createPace(),
): Visitor {
  return (url, method, signal) => visit({ world, limits, pace }, url, method, signal)
}

async function visit(
  { world, limits, pace }: VisitParts,
  start: string,
  first: Method,
  caller: AbortSignal,
): Promise<Visit> {
  // A signal of its own, because many visits share the caller's.
  const outer = AbortSignal.any([caller])
  let left = limits.milliseconds
  let method = first
  /** Runs work within the time limit of the visit. */
  async function timed<Value>(work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const begun = performance.now()
    try {
      return await work(AbortSignal.any([outer, timeoutSignal(Math.max(1, Math.ceil(left)))]))
    } finally {
      left -= performance.now() - begun
    }
  }
  try {
    let url = new URL(start)
    for (let hop = 0; hop <= limits.redirects; hop += 1) {
      const address = await timed((signal) => publicAddressOf(url, world, signal))
      const { location, ...answer } = await pace(address, outer, () =>
        timed((signal) => request(url, world.dial(address, portOf(url)), method, limits, signal)),
      )
      if (location === null) return { failure: null, ...answer }
      url = new URL(location, url)
      if (answer.status < 307) method = 'GET'
    }
    return { failure: 'refused', reason: `more than ${limits.redirects} redirects` }
  } catch (error) {
    if (outer.aborted) throw error
    if (error instanceof Refused) return { failure: 'refused', reason: error.message }
    return { failure: 'unreachable', reason: error instanceof Error ? error.message : String(error) }
  }
}

/** Resolves the address to connect to. Throws Refused if any address of the name is not public. */
async function publicAddressOf(url: URL, world: World, signal: AbortSignal): Promise<string> {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Refused(`the scheme ${url.protocol}`)
  if (url.username !== '' || url.password !== '') throw new Refused('a user in the address')
  if (!PORTS.has(portOf(url))) throw new Refused(`port ${portOf(url)}`)
  if (isPrivateHost(url.hostname)) throw new Refused('a private host')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const addresses = isIP(host) ? [host] : await abortable(world.resolve(host), signal)
  if (!addresses.every(isPublic)) throw new Refused('a private address')
  if (addresses[0] === undefined) throw new Error('the name has no address')
  return addresses[0]
}

/** Sends one request on its own connection to exactly this target. `location` is null unless the answer is a redirect. */
async function request(
  url: URL,
  target: ReturnType<World['dial']>,
  method: Method,
  limits: VisitLimits,
  signal: AbortSignal,
) {
  const place = { hostname: target.address, host: target.address, port: String(target.port) }
  // Loaded with the first visit, so that no start waits for it.
  const { buildConnector, Client } = await import('undici')
  const connect = buildConnector({ timeout: limits.milliseconds, maxCachedSessions: 0 })
  const client = new Client(url.origin, {
    connect: (options, done) => connect({ ...options, ...place, servername: url.hostname }, done),
    maxHeaderSize: 16_384,
  })
  try {
    const { statusCode, headers, body } = await client.request({
      path: url.pathname + url.search,
      method,
      signal,
      headers: method === 'POST' ? { ...HEADERS, 'content-type': 'application/json' } : HEADERS,
      body: method === 'POST' ? '{}' : null,
    })
    const location = REDIRECTS.has(statusCode) ? single(headers['location']) : null
    return {
      status: statusCode,
      location,
      body: location === null ? await beginningOf(body, limits.bytes) : '',
      paymentRequired: single(headers['payment-required']),
    }
  } finally {
    client.destroy().catch(() => undefined)
  }
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

const single = (header: string | string[] | undefined): string | null => (typeof header === 'string' ? header : null)

/** Reads a body up to the limit and cuts off the rest. */
async function beginningOf(body: AsyncIterable<Buffer>, most: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= most) break
  }
  return Buffer.concat(chunks).subarray(0, most).toString('utf8')
}

/** Runs requests to an address when the limits on its network allow it. */
export type Pace = <Value>(address: string, signal: AbortSignal, work: () => Promise<Value>) => Promise<Value>

const MAX_CONCURRENT = 8
const APART_MS = 500

/**
 * Allows at most `atOnce` requests in total, and one at a time per network (/24, or /48 of IPv6) with a pause after each.
 * So a list of a thousand addresses at one host does not flood that host.
 */
export function createPace({ atOnce = MAX_CONCURRENT, apartMs = APART_MS } = {}): Pace {
  const turns = new Map<string, Promise<void>>()
  const waiting: (() => void)[] = []
  let running = 0

  async function take(): Promise<void> {
    if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve))
    else running += 1
  }
  function give(): void {
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }

  return async (address, signal, work) => {
    const key = networkPrefix(address)
    const before = turns.get(key) ?? Promise.resolve()
    const { promise: mine, resolve: done } = deferred()
    const turn = before.then(() => mine)
    turns.set(key, turn)
    try {
      await abortable(before, signal)
      await take()
      try {
        return await work()
      } finally {
        give()
      }
    } finally {
      setTimeout(() => {
        done()
        if (turns.get(key) === turn) turns.delete(key)
      }, apartMs).unref()
    }
  }
}

/** Settles as `work` does, or rejects when the signal aborts. */
function abortable<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error)
    if (signal.aborted) leave()
    signal.addEventListener('abort', leave, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((keep) => {
    resolve = keep
  })
  return { promise, resolve }
}
