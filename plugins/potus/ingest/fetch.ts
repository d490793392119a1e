/** One conditional request to a source, limited in time and size. Follows redirects on the same host only. */
import { Agent, request } from 'undici'
import type { Source } from '../sources/source.ts'

export interface Validators {
  readonly etag: string | null
  readonly lastModified: string | null
}

export interface Fetched {
  readonly url: string
  /** Null if there was no answer. */
  readonly status: number | null
  readonly headers: Readonly<Record<string, string>>
  /** Only for a status of 200. */
  readonly body: Buffer | null
  /** Why there is no body. */
  readonly failure?: string
}

const USER_AGENT = 'tollgate/0.1'
const HEADERS_MS = 5_000
const BODY_MS = 15_000
const MAX_REDIRECTS = 3
/** Response headers that are stored with the poll. */
const KEPT = ['etag', 'last-modified', 'content-type', 'date', 'age', 'retry-after']

export interface Fetcher {
  /** Rejects only if `signal` aborts. Any other problem is described in `failure`. */
  fetch(source: Source, validators: Validators, at: number, signal: AbortSignal): Promise<Fetched>
  close(): Promise<void>
}

/** Creates a fetcher with its own connections. */
export function createFetcher(): Fetcher {
  const agent = new Agent({ connect: { timeout: HEADERS_MS }, headersTimeout: HEADERS_MS, bodyTimeout: BODY_MS })
  return {
    async fetch(source, validators, at, signal) {
      const url = new URL(source.url)
      if (source.cacheBuster !== null) url.searchParams.set(source.cacheBuster, String(at))
      const within = AbortSignal.any([signal, AbortSignal.timeout(HEADERS_MS + BODY_MS)])
      const headers = requestHeaders(source, validators)
      try {
        return await ask(url.href, { agent, headers, maxBytes: source.maxBytes, signal: within }, MAX_REDIRECTS)
      } catch (error) {
        signal.throwIfAborted()
        const { code, message, name } = error as Error & { code?: string }
        const failure = name === 'TimeoutError' ? 'The source did not answer in time.' : `${code ?? name}: ${message}`
        return { url: url.href, status: null, headers: {}, body: null, failure }
      }
    },
    close: () => agent.destroy(),
  }
}

function requestHeaders(source: Source, { etag, lastModified }: Validators): Record<string, string> {
  return {
    'user-agent': source.userAgent ?? USER_AGENT,
    accept:
      source.format === 'json'
        ? 'application/json'
        : 'application/rss+xml, application/atom+xml, application/xml, text/xml',
    ...(source.noCache ? { 'cache-control': 'no-cache' } : {}),
    ...(etag === null ? {} : { 'if-none-match': etag }),
    ...(lastModified === null ? {} : { 'if-modified-since': lastModified }),
  }
}

interface RequestParts {
  readonly agent: Agent
  readonly headers: Readonly<Record<string, string>>
  readonly maxBytes: number
  readonly signal: AbortSignal
}

/** Sends the request and follows up to `redirects` redirects on the same host. */
async function ask(url: string, parts: RequestParts, redirects: number): Promise<Fetched> {
  const { agent, signal, maxBytes } = parts
  const { statusCode, headers, body } = await request(url, { dispatcher: agent, signal, headers: { ...parts.headers } })
  const kept = Object.fromEntries(
    KEPT.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  )
  const answer = { url, status: statusCode, headers: kept, body: null }
  const location = headers['location']
  if (statusCode >= 301 && statusCode <= 308 && statusCode !== 304 && location !== undefined) {
    await body.dump()
    const to = new URL(String(location), url)
    if (to.host !== new URL(url).host)
      return { ...answer, failure: `The source redirects to another host, ${to.host}.` }
    if (redirects === 0) return { ...answer, failure: 'The source redirects too often.' }
    return ask(to.href, parts, redirects - 1)
  }
  if (statusCode !== 200) {
    await body.dump()
    return statusCode === 304 ? answer : { ...answer, failure: `The source answered ${statusCode}.` }
  }
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) {
      body.destroy()
      return { ...answer, failure: `The body is longer than ${maxBytes} bytes.` }
    }
    chunks.push(chunk)
  }
  return { ...answer, body: Buffer.concat(chunks) }
}
