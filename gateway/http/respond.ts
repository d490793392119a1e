/** Writes an Answer to the socket: negotiation, headers, receipts, caching. The only place that sends. */
import type { Request, Response } from 'express'
import { errorAnswer } from '../calls/answers.ts'
import type { Answer } from '../calls/call.ts'
import type { Operation } from '../plugin/catalog.ts'
import { receiptHeaders } from '../x402/settlement-response.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { HeaderSets } from './headers.ts'
import { isFresh } from './negotiate.ts'
import { gzipped, isPackable, packedHeaders } from './packing.ts'
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
