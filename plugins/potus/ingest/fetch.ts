/**
 * One conditional request to a source, compressed if the source can, and limited in time and size. Follows redirects on the
 * same host only.
 */
import { pipeline, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createGzip, createInflate } from 'node:zlib'
import { timeoutSignal } from 'tollgate/plugin'
import type { Agent } from 'undici'
import type { Source } from '../sources/source.ts'

export interface Validators {
  readonly etag: string | null
  readonly lastModified: string | null
}

export interface Fetched {
  readonly url: string
  /** Null if there was no answer. */
  readonly status: number | null
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Only for a status of 200. For a source whose listing is streamed, the body as gzip. */
  readonly body: Buffer | null
  /** Why there is no body. */
  readonly failure?: string
}

const USER_AGENT = 'tollgate/0.1'
const HEADERS_MS = 5_000
const BODY_MS = 15_000
/** A long list may take so long as a whole. */
const LISTING_MS = 180_000
const MAX_REDIRECTS = 3
/** Response headers that are stored with the poll. */
const KEPT = ['etag', 'last-modified', 'content-type', 'date', 'age', 'retry-after']

export interface Fetcher {
  /** Rejects only if `signal` aborts. Any other problem is described in `failure`. */
  fetch(source: Source, validators: Validators, at: number, signal: AbortSignal): Promise<Fetched>
  close(): Promise<void>
}

/** Loaded with the first request, so that no start waits for it. */
const loadClient = () => import('undici')

/** Creates a fetcher with its own connections. */
export function createFetcher(): Fetcher {
  let agent: Promise<Agent> | null = null
  const openAgent = async (): Promise<Agent> => {
    const { Agent } = await loadClient()
    return new Agent({ connect: { timeout: HEADERS_MS }, headersTimeout: HEADERS_MS, bodyTimeout: BODY_MS })
  }
  return {
    async fetch(source, validators, at, signal) {
      const url = new URL(source.url)
      if (source.cacheBuster !== null) url.searchParams.set(source.cacheBuster, String(at))
      const within = AbortSignal.any([signal, timeoutSignal(HEADERS_MS + (source.streamed ? LISTING_MS : BODY_MS))])
      const headers = requestHeaders(source, validators)
      try {
        agent ??= openAgent()
        const parts = {
          agent: await agent,
          headers,
          maxBytes: source.maxBytes,
          signal: within,
          packed: source.streamed,
        }
        return await ask(url.href, parts, MAX_REDIRECTS)
      } catch (error) {
        signal.throwIfAborted()
        const { code, message, name } = error as Error & { code?: string }
        const failure = name === 'TimeoutError' ? 'The source did not answer in time.' : `${code ?? name}: ${message}`
        return { url: url.href, status: null, headers: {}, body: null, failure }
      }
    },
    close: async () => (await agent)?.destroy(),
  }
}

function requestHeaders(source: Source, { etag, lastModified }: Validators): Record<string, string> {
  return {
    'user-agent': source.userAgent ?? USER_AGENT,
    accept:
      source.format === 'json'
        ? 'application/json'
        : 'application/rss+xml, application/atom+xml, application/xml, text/xml',
    'accept-encoding': 'gzip',
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
  /** Returns the body as gzip, whatever its encoding was. */
  readonly packed: boolean
}

/** Decoders by content encoding. Sources may send one that was not asked for. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Sends the request and follows up to `redirects` redirects on the same host. */
async function ask(url: string, parts: RequestParts, redirects: number): Promise<Fetched> {
  const { agent, signal, maxBytes, packed } = parts
  const { request } = await loadClient()
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
  const encoding = String(headers['content-encoding'] ?? 'identity').toLowerCase()
  const decoder = DECODERS[encoding]
  if (!decoder && encoding !== 'identity') {
    await body.dump()
    return { ...answer, failure: `The source sent the encoding ${encoding}, which cannot be read.` }
  }
  const decoded = decoder ? pipeline(body, decoder(), ignore) : body
  try {
    const within = limited(decoded as AsyncIterable<Buffer>, maxBytes)
    const chunks: Buffer[] = []
    for await (const chunk of packed ? pipeline(within, createGzip({ level: 1 }), ignore) : within)
      chunks.push(chunk as Buffer)
    return { ...answer, body: Buffer.concat(chunks) }
  } catch (error) {
    body.destroy()
    if (error instanceof TooLong) return { ...answer, failure: `The body is longer than ${maxBytes} bytes.` }
    throw error
  }
}

class TooLong extends Error {}

/** Passes the bytes on. Throws TooLong once there are more than `maxBytes`, decoded. */
async function* limited(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > maxBytes) throw new TooLong()
    yield chunk
  }
}

/** Errors of a pipeline reach whoever reads its end. */
const ignore = (): void => {}
