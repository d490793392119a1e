/** Writes an Answer to the socket: page or data, headers, receipts, caching, compression. Nothing else sends answers. */
import { gzipSync } from 'node:zlib'
import type { Request, Response } from 'express'
import { errorAnswer } from '../calls/answers.ts'
import type { Answer } from '../calls/request-and-answer.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Quote } from '../x402/challenge.ts'
import { receiptHeaders } from '../x402/settlement-response.ts'
import type { HeaderSets } from './headers.ts'
import { formTarget, type PageContext, pageOf } from './pages.ts'
import type { Render } from './render.ts'

const HTML = 'text/html; charset=utf-8'
const NO_STORE = 'no-store'

export interface Exchange extends PageContext {
  readonly request: Request
  readonly response: Response
}

export interface ResponderParts {
  readonly headers: HeaderSets
  readonly render: Render
  readonly log: Logger
  /** Aborts when the server begins to close: from then on no connection is kept alive. */
  readonly closing: { readonly signal: AbortSignal }
}

/** Sends an answer. Of an event stream or an upstream's stream it sends the head; the caller sends the rest. */
export function respond(parts: ResponderParts, exchange: Exchange, answer: Answer): void {
  const { request, response, operation, browser, callId } = exchange
  if (response.headersSent || response.destroyed) return
  const sent: Answer =
    operation?.form && browser
      ? { ...answer, status: 303, headers: { location: formTarget(operation.form, answer) }, body: Buffer.alloc(0) }
      : renderPage(parts, exchange, answer)
  const isPage = !answer.stream && sent.headers['content-type']?.startsWith('text/html') === true
  const headers: Record<string, string | number> = {
    ...(isPage ? parts.headers.page : parts.headers.data),
    ...sent.headers,
    'x-call-id': callId,
    'cache-control': cacheControl(operation, sent, request.method),
    ...(answer.quote ? { 'payment-required': answer.quote.header } : {}),
    ...(answer.receipt ? receiptHeaders(answer.receipt) : {}),
    ...(isNegotiated(operation) ? { vary: 'Accept' } : {}),
    ...(parts.closing.signal.aborted ? { connection: 'close' } : {}),
  }
  if (answer.events) {
    headers['content-type'] = 'text/event-stream; charset=utf-8'
    headers['x-accel-buffering'] = 'no'
  }
  if (answer.events || answer.stream) response.writeHead(sent.status, headers)
  else sendBody(exchange, sent, headers)
}

/** The headers of a 402 that depend on its operation and quote. */
export function challengeHeaders(operation: Operation, quote: Quote): Readonly<Record<string, string>> {
  return {
    'cache-control': NO_STORE,
    'payment-required': quote.header,
    ...(isNegotiated(operation) ? { vary: 'Accept' } : {}),
  }
}

/** True if the operation answers with a page or with data, as the caller prefers. */
function isNegotiated(operation: Operation | null): boolean {
  return operation?.view != null && operation.response !== null
}

/** Sends head and body, compressed if possible, or 304 if the caller has the body already. */
function sendBody(
  { request, response, operation }: Exchange,
  { status, headers: { etag }, body: plain }: Answer,
  headers: Record<string, string | number>,
): void {
  const isFree = operation?.price === null
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const isCompressible = isFree && isRead && isWorthCompressing(headers['content-type'], plain)
  if (isCompressible) headers['vary'] = isNegotiated(operation) ? 'Accept, Accept-Encoding' : 'Accept-Encoding'
  const body = isCompressible && request.acceptsEncodings('gzip') ? gzipped(plain) : plain
  if (body !== plain) Object.assign(headers, gzipHeaders(etag))
  if (status === 200 && isFree && isFresh(request, etag)) {
    for (const name of ['content-type', 'content-encoding']) delete headers[name]
    response.writeHead(304, headers).end()
    return
  }
  headers['content-length'] = body.length
  response.writeHead(status, headers)
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** Renders the answer as a page if the caller wants one. If the view fails, the caller gets JSON. */
function renderPage(parts: ResponderParts, exchange: Exchange, answer: Answer): Answer {
  const { render, log } = parts
  const page = pageOf(answer, exchange)
  if (page === null) return answer
  try {
    // The ETag identifies the data, not the page.
    const { etag: _, ...headers } = answer.headers
    const body = Buffer.from(render(page.view, page.locals))
    return { ...answer, headers: { ...headers, 'content-type': HTML }, body }
  } catch (error) {
    log.error({ call: exchange.callId, view: page.view, err: error }, 'a page could not be rendered')
    return answer.error ? answer : renderPage(parts, exchange, errorAnswer(error, exchange.callId))
  }
}

/** Paid answers and refusals must not be cached: they are meant for one caller at one time. */
function cacheControl(operation: Operation | null, { status, headers, events }: Answer, method: string): string {
  if (status >= 300 || events) return NO_STORE
  if (operation !== null && operation.price !== null) return 'private, no-store'
  if (headers['cache-control'] !== undefined) return headers['cache-control']
  if (method !== 'GET' && method !== 'HEAD') return 'no-store'
  return operation !== null && operation.cacheSeconds > 0 ? `public, max-age=${operation.cacheSeconds}` : 'no-cache'
}

/** Returns true if If-None-Match names this ETag (RFC 9110, section 13.1.2: weak comparison). */
function isFresh(request: Request, etag: string | undefined): boolean {
  const known = request.headers['if-none-match']
  if (known === undefined || etag === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) return false
  if (known.trim() === '*') return true
  return known.split(',').some((tag) => opaqueTag(tag) === opaqueTag(etag))
}

const opaqueTag = (tag: string): string => tag.trim().replace(/^W\//, '')

/** A shorter body fits one network packet anyway. */
const MIN_GZIP_BYTES = 1_400
/** Compression blocks the event loop, so longer bodies are sent as they are. */
const MAX_GZIP_BYTES = 2_000_000
const COMPRESSIBLE = /^(?:text\/|application\/(?:json|xml|linkset\+json|javascript)\b|image\/svg\+xml)/

/** Compressed bodies by plain body: a document is the same buffer for every caller, so it is compressed once. */
const compressedBodies = new WeakMap<Buffer, Buffer>()

/** Only free answers are compressed: the receipt of a paid answer has the digest of its bytes. */
function isWorthCompressing(type: string | number | undefined, { length }: Buffer): boolean {
  return typeof type === 'string' && COMPRESSIBLE.test(type) && length >= MIN_GZIP_BYTES && length <= MAX_GZIP_BYTES
}

/** Returns the body compressed with gzip. The same buffer is compressed only once. */
export function gzipped(body: Buffer): Buffer {
  const compressed = compressedBodies.get(body) ?? gzipSync(body)
  compressedBodies.set(body, compressed)
  return compressed
}

/** The compressed body differs from the plain one, so the two can share only a weak ETag (RFC 9110, section 8.8.1). */
function gzipHeaders(etag: string | undefined): Readonly<Record<string, string>> {
  const encoding = { 'content-encoding': 'gzip' }
  return etag === undefined ? encoding : { ...encoding, etag: etag.startsWith('W/') ? etag : `W/${etag}` }
}
