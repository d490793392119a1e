/** Builds a CallRequest from an HTTP request: the caller, the credentials, and a function that reads the rest. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Request } from 'express'
import type { CallRequest, Credential } from '../calls/request-and-answer.ts'
import type { ForwardedRequest } from '../editions/upstream.ts'
import { TOKEN_HEADER, type Operation } from '../plugin/catalog.ts'
import { readBody, readRawBody } from './request-body.ts'
import { bucketOf } from './rate-limit.ts'
import { forwardedHeaders, type UpstreamProxy } from '../editions/upstream-proxy.ts'
import { parsePairs, publicUrl, type Target } from './request-target.ts'

/** Where x402 clients of version 2 and 1 put a payment. */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const
const TOKEN = TOKEN_HEADER.toLowerCase()

/** Returns the payments in the request's headers, undecoded. */
export function headerPayments(headers: IncomingHttpHeaders): string[] {
  return PAYMENT_HEADERS.map((name) => headers[name]).filter((value): value is string => Boolean(value))
}

/** Returns the access token, with or without the prefix `Bearer `, or null. */
export function headerToken(headers: IncomingHttpHeaders): string | null {
  const value = headers[TOKEN]
  if (typeof value !== 'string') return null
  return value.replace(/^bearer +/i, '').trim() || null
}

/** Returns the Idempotency-Key header as sent. */
export function idempotencyKey({ 'idempotency-key': key }: IncomingHttpHeaders): Pick<CallRequest, 'idempotencyKey'> {
  return typeof key === 'string' ? { idempotencyKey: key } : {}
}

/** Returns the credentials of a call, or null if it has neither a payment nor a token. */
export function credentialOf(payments: Credential['payments'], token: string | null): Credential | null {
  return payments.length === 0 && token === null ? null : { payments, token }
}

/**
 * Returns true for a caller, usually a browser, whose Accept header names text/html and prefers it to JSON. A caller that
 * accepts anything gets JSON.
 */
export function wantsPage(request: Request): boolean {
  const accept = request.headers.accept
  if (accept === undefined || !/text\/html/i.test(accept)) return false
  return request.accepts('application/json', 'text/html') === 'text/html'
}

/** Returns a controller that aborts if the connection closes before the whole answer was sent. */
export function watchCaller(response: ServerResponse): AbortController {
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(new Error('The caller disconnected.'))
  })
  return gone
}

/** Returns the caller's address. X-Forwarded-For counts only on a connection from a private address or a trusted proxy. */
export function clientOf(request: IncomingMessage & { readonly ip?: string | undefined }): string {
  const address = request.headers['x-forwarded-for'] === undefined ? request.socket.remoteAddress : request.ip
  return address ?? ''
}

/** Returns `stream` if the caller accepts server-sent events, with the id of the last event it received. */
function streamRequestOf({ accept, 'last-event-id': last }: IncomingHttpHeaders): Pick<CallRequest, 'stream'> {
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
  /** Set if an upstream answers the operation. It receives the body as it was sent. */
  readonly proxy: UpstreamProxy | null
}

/** Builds the CallRequest. The body is not read until `read` is called. */
export function callRequest(call: HttpCall): CallRequest {
  const { request, response, operation, target, baseUrl, id, signal, proxy } = call
  const { headers } = request
  const params = { ...request.params }
  const isProbe = request.method === 'HEAD' && operation.price !== null
  return {
    id,
    transport: 'http',
    url: publicUrl(baseUrl, target),
    // HEAD on a priced operation ignores every credential and answers as an unpaid GET would.
    credential: isProbe ? null : credentialOf(headerPayments(headers), headerToken(headers)),
    ...idempotencyKey(headers),
    client: bucketOf(clientOf(request)),
    signal,
    onSent: (listener) => void response.once('finish', listener),
    ...streamRequestOf(headers),
    async read() {
      if (operation.bodyMedia.length > 0 && /^100-continue$/i.test(headers.expect ?? '')) response.writeContinue()
      const query = parsePairs(target.search)
      if (!proxy) return { params, query, body: await readBody(request, operation) }
      const { body, raw } = await readRawBody(request, operation)
      const forwarded = {
        body: raw,
        headers: forwardedHeaders(headers),
        request: (upstreamRequest) => proxy.request(upstreamRequest),
      } satisfies ForwardedRequest
      return { params, query, body, forwarded }
    },
  }
}
