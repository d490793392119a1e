/** An HTTP request as a CallRequest: who asks, what was presented, and how to read the rest. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Request } from 'express'
import type { CallRequest, Credential } from '../calls/call.ts'
import type { ForwardedRequest } from '../editions/upstream-request.ts'
import { TOKEN_HEADER, type Operation } from '../plugin/catalog.ts'
import { readBody, readWhole } from './request-body.ts'
import { bucketOf } from './rate-limit.ts'
import { forwardedHeaders, type UpstreamProxy } from '../editions/upstream-proxy.ts'
import { parsePairs, publicUrl, type Target } from './request-target.ts'

const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const
const TOKEN = TOKEN_HEADER.toLowerCase()

/** Payments named by header, undecoded. */
export function headerPayments(headers: IncomingHttpHeaders): string[] {
  return PAYMENT_HEADERS.map((name) => headers[name]).filter((value): value is string => Boolean(value))
}

/** The access token, bare or after `Bearer `, or null. */
export function headerToken(headers: IncomingHttpHeaders): string | null {
  const value = headers[TOKEN]
  if (typeof value !== 'string') return null
  return value.replace(/^bearer +/i, '').trim() || null
}

/** The caller's own name for the purchase, as sent. */
export function idempotencyKey({ 'idempotency-key': key }: IncomingHttpHeaders): Pick<CallRequest, 'idempotencyKey'> {
  return typeof key === 'string' ? { idempotencyKey: key } : {}
}

/** Null where neither a payment nor a token was presented. */
export function credentialOf(payments: Credential['payments'], token: string | null): Credential | null {
  return payments.length === 0 && token === null ? null : { payments, token }
}

/** A browser, or another caller whose Accept names text/html and prefers it to JSON. A plain star gets JSON. */
export function wantsPage(request: Request): boolean {
  const accept = request.headers.accept
  if (accept === undefined || !/text\/html/i.test(accept)) return false
  return request.accepts('application/json', 'text/html') === 'text/html'
}

/** Aborts when the connection is gone before the answer has been sent. */
export function watchCaller(response: ServerResponse): AbortController {
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(new Error('The caller is gone.'))
  })
  return gone
}

/** Address of the caller; X-Forwarded-For counts only where the connection comes from a private address or a trusted proxy. */
export function clientOf(request: IncomingMessage & { readonly ip?: string | undefined }): string {
  const address = request.headers['x-forwarded-for'] === undefined ? request.socket.remoteAddress : request.ip
  return address ?? ''
}

/** What an EventSource says of itself: that it accepts events, and the last one it had. */
function streamWish({ accept, 'last-event-id': last }: IncomingHttpHeaders): Pick<CallRequest, 'stream'> {
  if (!/\btext\/event-stream\b/i.test(accept ?? '')) return {}
  return { stream: { lastEventId: typeof last === 'string' && last !== '' ? last : null } }
}

export interface HttpCall {
  readonly request: Request
  readonly response: ServerResponse
  readonly operation: Operation
  readonly target: Target
  readonly baseUrl: string
  readonly id: string
  readonly signal: AbortSignal
  /** Set where an upstream answers: it gets the body as it came. */
  readonly proxy: UpstreamProxy | null
}

/** Builds the CallRequest. Nothing is read until `read` is called. */
export function callRequest(call: HttpCall): CallRequest {
  const { request, response, operation, target, baseUrl, id, signal, proxy } = call
  const { headers } = request
  const params = { ...request.params }
  const isProbe = request.method === 'HEAD' && operation.price !== null
  return {
    id,
    transport: 'http',
    url: publicUrl(baseUrl, target),
    // HEAD never runs a priced operation, whatever is presented: it answers what an unpaid GET would.
    credential: isProbe ? null : credentialOf(headerPayments(headers), headerToken(headers)),
    ...idempotencyKey(headers),
    client: bucketOf(clientOf(request)),
    signal,
    onSent: (listener) => void response.once('finish', listener),
    ...streamWish(headers),
    async read() {
      if (operation.bodyMedia.length > 0 && /^100-continue$/i.test(headers.expect ?? '')) response.writeContinue()
      const query = parsePairs(target.search)
      if (!proxy) return { params, query, body: await readBody(request, operation) }
      const { body, sent } = await readWhole(request, operation)
      const forwarded = {
        body: sent,
        headers: forwardedHeaders(headers),
        request: (upstreamRequest) => proxy.request(upstreamRequest),
      } satisfies ForwardedRequest
      return { params, query, body, forwarded }
    },
  }
}
