/** Writes an Answer to the socket: negotiation, headers, receipts, caching. The only place that sends. */
import { gzipSync } from 'node:zlib'
import type { Request, Response } from 'express'
import { errorAnswer } from '../calls/answers.ts'
import type { Answer } from '../calls/call.ts'
import type { Operation } from '../plugin/catalog.ts'
import { receiptHeaders } from '../x402/settlement-response.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { HeaderSets } from './headers.ts'
import { formTarget, type PageContext, pageOf } from './pages.ts'
import type { Render } from './render.ts'

const HTML = 'text/html; charset=utf-8'

export interface Exchange extends PageContext {
  readonly request: Request
  readonly response: Response
}

export interface ResponderParts {
  readonly headers: HeaderSets
  readonly render: Render
  readonly log: Logger
  /** The server is closing: connections are not kept. */
  readonly closing: AbortSignal
}

/** Sends an answer, or the head of its event stream; the events themselves are the caller's to send. */
export type Respond = (exchange: Exchange, answer: Answer) => void

export function createResponder({ headers, render, log, closing }: ResponderParts): Respond {
  /** The answer as a page where the caller wants one. A page that cannot be rendered falls back to JSON. */
  function shown(exchange: Exchange, answer: Answer): Answer {
    const page = pageOf(answer, exchange)
    if (page === null) return answer
    try {
      const { etag: _of_the_data, ...rest } = answer.headers
      return {
        ...answer,
        headers: { ...rest, 'content-type': HTML },
        body: Buffer.from(render(page.view, page.locals)),
      }
    } catch (error) {
      log.error({ call: exchange.callId, view: page.view, err: error }, 'a page could not be rendered')
      return answer.error ? answer : shown(exchange, errorAnswer(error, exchange.callId))
    }
  }

  return (exchange, answer) => {
    const { request, response, operation, browser, callId } = exchange
    if (response.headersSent || response.destroyed) return
    const sent: Answer =
      operation?.form && browser
        ? { ...answer, status: 303, headers: { location: formTarget(operation.form, answer) }, body: Buffer.alloc(0) }
        : shown(exchange, answer)
    const isPage = !answer.stream && sent.headers['content-type']?.startsWith('text/html') === true
    const isNegotiated = operation?.view != null && operation.response !== null
    const all: Record<string, string | number> = {
      ...(isPage ? headers.page : headers.data),
      ...sent.headers,
      'x-call-id': callId,
      'cache-control': cacheControl(operation, sent, request.method),
      ...(answer.quote ? { 'payment-required': answer.quote.header } : {}),
      ...(answer.receipt ? receiptHeaders(answer.receipt) : {}),
      ...(isNegotiated ? { vary: 'Accept' } : {}),
      ...(closing.aborted ? { connection: 'close' } : {}),
    }
    if (answer.events) {
      all['content-type'] = 'text/event-stream; charset=utf-8'
      all['x-accel-buffering'] = 'no'
      response.writeHead(sent.status, all)
      return
    }
    if (answer.stream) {
      response.writeHead(sent.status, all)
      return
    }
    const isFree = operation?.price === null && (request.method === 'GET' || request.method === 'HEAD')
    const packing = isFree && isPackable(all['content-type'], sent.body)
    if (packing) all['vary'] = isNegotiated ? 'Accept, Accept-Encoding' : 'Accept-Encoding'
    const body = packing && request.acceptsEncodings('gzip') ? gzipped(sent.body) : sent.body
    if (body !== sent.body) Object.assign(all, packedHeaders(sent.headers['etag']))
    if (sent.status === 200 && operation?.price === null && isFresh(request, sent.headers['etag'])) {
      for (const name of ['content-type', 'content-encoding']) delete all[name]
      response.writeHead(304, all).end()
      return
    }
    all['content-length'] = body.length
    response.writeHead(sent.status, all)
    response.end(request.method === 'HEAD' ? undefined : body)
  }
}

/** Priced answers and refusals are for this caller and this moment only. */
function cacheControl(operation: Operation | null, { status, headers, events }: Answer, method: string): string {
  if (status >= 300 || events) return 'no-store'
  if (operation !== null && operation.price !== null) return 'private, no-store'
  if (headers['cache-control'] !== undefined) return headers['cache-control']
  if (method !== 'GET' && method !== 'HEAD') return 'no-store'
  return operation !== null && operation.cacheSeconds > 0 ? `public, max-age=${operation.cacheSeconds}` : 'no-cache'
}

/** True where If-None-Match names this tag (RFC 9110, section 13.1.2: weak comparison). */
export function isFresh(request: Request, etag: string | undefined): boolean {
  const known = request.headers['if-none-match']
  if (known === undefined || etag === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) return false
  if (known.trim() === '*') return true
  return known.split(',').some((tag) => opaque(tag) === opaque(etag))
}

const opaque = (tag: string): string => tag.trim().replace(/^W\//, '')

/** Below this a packet on the wire holds it anyway. */
const LEAST_BYTES = 1_400
/** Packing waits for nobody, so what is larger goes out as it is. */
const MOST_BYTES = 2_000_000
const TEXT = /^(?:text\/|application\/(?:json|xml|linkset\+json|javascript)\b|image\/svg\+xml)/

/** A document is the same bytes for every caller, and packed once. */
const packed = new WeakMap<Buffer, Buffer>()

/** Whether a body of that type and length is worth packing. */
export function isPackable(type: string | number | undefined, { length }: Buffer): boolean {
  return typeof type === 'string' && TEXT.test(type) && length >= LEAST_BYTES && length <= MOST_BYTES
}

export function gzipped(body: Buffer): Buffer {
  const known = packed.get(body) ?? gzipSync(body)
  packed.set(body, known)
  return known
}

/** A packed body has other bytes than the plain one, so they share a weak ETag only (RFC 9110, 8.8.1). */
export function packedHeaders(etag: string | undefined): Readonly<Record<string, string>> {
  const coding = { 'content-encoding': 'gzip' }
  return etag === undefined ? coding : { ...coding, etag: etag.startsWith('W/') ? etag : `W/${etag}` }
}
