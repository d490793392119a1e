/** Builds a CallRequest from an HTTP request: the caller, the credentials, and a function that reads the rest. */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import type { ReadLargeBody } from '../calls/large-bodies.ts'
import type { CallRequest, Credential } from '../calls/request-and-answer.ts'
import type { BoundOperation, Edition, RawInput } from '../products/edition.ts'
import type { Caller } from '../workers/timeout.ts'
import type { ForwardedRequest } from '../products/upstream.ts'
import { TOKEN_HEADER } from '../plugin/catalog.ts'
import type { BodyStorages } from './body-storage.ts'
import { announcedBytes, readBody, type Reading, readRawBody } from './request-body.ts'
import { type CallerAddress, isLoopback, limitedPlaceOf } from './caller-address.ts'
import type { NameClient } from './client-names.ts'
import type { StreamPlaces } from './stream-places.ts'
import { forwardedHeaders, type UpstreamProxy } from '../products/upstream-proxy.ts'
import { parsePairs, publicUrl, type Target } from './request-target.ts'
import { noteFormat, ROW_FORMATS, ROW_MEDIA, type RowFormat } from '../calls/rows/asked-format.ts'
import { tableOf } from '../catalog/table.ts'
import { SIGN_IN_WITH_X } from '../x402/sign-in-with-x.ts'

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

/** Returns the sign-in of the caller's wallet as sent. */
export function signInOf({ [SIGN_IN_WITH_X]: signIn }: IncomingHttpHeaders): Pick<CallRequest, 'signIn'> {
  return typeof signIn === 'string' ? { signIn } : {}
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

/** A request whose first line was read, and where to answer it. One edition serves it. */
export interface Visit {
  readonly request: Request
  readonly response: Response
  readonly id: string
  readonly edition: Edition
  readonly target: Target
  /** Where the request comes from. */
  readonly from: CallerAddress
  /** The value of `performance.now()` when the request came. */
  readonly startedAt: number
  /** The route that answers, as the log names it; null until it is known. */
  route: string | null
}

const VISIT = Symbol('visit')
type Visited = ServerResponse & { [VISIT]?: Visit }

/** Begins a visit, which `visitOf` finds by its response. */
export function beginVisit(
  request: Request,
  response: Response,
  visited: Pick<Visit, 'edition' | 'target' | 'from' | 'route'>,
): Visit {
  const { edition, target, from, route } = visited
  const visit = { request, response, id: randomUUID(), edition, target, from, startedAt: performance.now(), route }
  ;(response as Visited)[VISIT] = visit
  return visit
}

/** The visit that a response answers. */
export function visitOf(response: ServerResponse): Visit {
  return (response as Visited)[VISIT] as Visit
}

/** Whether a caller still waits, and where it is. Its signal is created when somebody asks for it: most calls end before. */
export class HttpCaller implements Caller {
  readonly #response: ServerResponse
  readonly #nameClient: NameClient
  #leaving: AbortController | null = null

  constructor(response: ServerResponse, nameClient: NameClient) {
    this.#response = response
    this.#nameClient = nameClient
  }

  get client(): string {
    return this.#nameClient(visitOf(this.#response).from.address)
  }

  /** Aborts if the connection closes before the whole answer was sent. */
  get signal(): AbortSignal {
    if (this.#leaving) return this.#leaving.signal
    const leaving = new AbortController()
    this.#leaving = leaving
    const leave = (): void => leaving.abort(new Error('The caller disconnected.'))
    if (this.hasLeft) leave()
    else this.onLeave(leave)
    return leaving.signal
  }

  /** True once the connection has closed before the whole answer was sent. */
  get hasLeft(): boolean {
    return this.#response.closed && !this.#response.writableFinished
  }

  onLeave(listener: () => void): () => void {
    const closed = (): void => {
      if (this.hasLeft) listener()
    }
    this.#response.once('close', closed)
    return () => this.#response.off('close', closed)
  }

  /** Aborts the signal. */
  leave(): void {
    this.#leaving?.abort()
  }
}

/**
 * Returns the exact address that a call comes from, "loopback" for this machine. Null if others may share it: then nothing
 * may be granted because of it.
 */
export function clientOf({ from: { address, isKnown, isShared } }: Pick<Visit, 'from'>): string | null {
  if (!isKnown || isShared) return null
  return isLoopback(address) ? 'loopback' : address
}

/** Returns what limits count as one caller: its address, or its /64. Nothing on this machine, which is not limited. */
export function callerPlaceOf({ from }: Pick<Visit, 'from'>): Pick<CallRequest, 'callerPlace'> {
  const callerPlace = limitedPlaceOf(from)
  return callerPlace === null ? {} : { callerPlace }
}

/** Returns `stream` if the caller accepts server-sent events, with the id of the last event it received. */
function streamRequestOf({ accept, 'last-event-id': last }: IncomingHttpHeaders): Pick<CallRequest, 'stream'> {
  if (!/\btext\/event-stream\b/i.test(accept ?? '')) return {}
  return { stream: { lastEventId: typeof last === 'string' && last !== '' ? last : null } }
}

export interface HttpCall {
  readonly visit: Visit
  readonly bound: BoundOperation
  readonly caller: HttpCaller
  readonly baseUrl: string
  /** Passes calls on to upstreams. An upstream receives the body as it was sent. */
  readonly proxy: UpstreamProxy
  /** Where event streams take their places. */
  readonly streams: StreamPlaces
  /** Reads large bodies. Without it, they are parsed on the event loop. */
  readonly readLarge?: ReadLargeBody | undefined
  /** Where bodies are kept. */
  readonly bodies?: BodyStorages | undefined
}

/** Builds the CallRequest. The body is not read until `read` is called. */
export function callRequest(call: HttpCall): CallRequest {
  const { visit, bound, caller, baseUrl, streams } = call
  const { request, response, target } = visit
  const { operation, isUpstream } = bound
  const { headers } = request
  const params = { ...request.params }
  const isProbe = request.method === 'HEAD' && operation.price !== null
  const built: CallRequest & { bodyBytes: number } = {
    id: visit.id,
    transport: 'http',
    url: publicUrl(baseUrl, target),
    // HEAD on a priced operation ignores every credential and answers as an unpaid GET would.
    credential: isProbe ? null : credentialOf(headerPayments(headers), headerToken(headers)),
    ...(isProbe ? { isProbe } : {}),
    ...idempotencyKey(headers),
    ...signInOf(headers),
    bodyBytes: operation.bodyMedia.length === 0 ? 0 : announcedBytes(request),
    client: clientOf(visit),
    ...callerPlaceOf(visit),
    caller,
    onSent: (listener) => void response.once('finish', listener),
    ...streamRequestOf(headers),
    takeStreamPlace: (isByToken) => streams.take(response, visit.from, isByToken ? headerToken(headers) : null),
    read(onArrival) {
      const query = queryOf(call)
      if (operation.bodyMedia.length === 0 && !isUpstream) return { params, query, body: undefined }
      if (operation.bodyMedia.length > 0) sendContinue(request, response)
      const reading = readingOf(call, params, query, (bytes) => {
        built.bodyBytes = bytes
        onArrival?.()
      })
      return isUpstream ? readForwarded(call, params, query, reading) : readParts(call, params, query, reading)
    },
  }
  return built
}

/** The query, with a note of the format in which the caller wants the rows of the answer. */
function queryOf({ visit: { request, edition, target }, bound: { operation } }: HttpCall): Fields {
  const query = parsePairs(target.search)
  const table = tableOf(operation, edition.catalog)
  return table ? noteFormat(table, query, acceptedFormat(request)) : query
}

/** The format that the Accept header prefers to JSON. */
function acceptedFormat(request: Request): RowFormat | null {
  if (!/csv|ndjson|parquet/i.test(request.headers.accept ?? '')) return null
  const preferred = request.accepts('application/json', ...Object.values(ROW_MEDIA))
  return ROW_FORMATS.find((format) => ROW_MEDIA[format] === preferred) ?? null
}

/** Tells a caller who waits with the body that it is going to be read (RFC 9110, section 10.1.1). */
export function sendContinue({ headers }: IncomingMessage, response: ServerResponse): void {
  if (/^100-continue$/i.test(headers.expect ?? '')) response.writeContinue()
}

type Fields = RawInput['query']

async function readParts(
  { visit, bound }: HttpCall,
  params: Fields,
  query: Fields,
  reading: Reading,
): Promise<RawInput> {
  return { params, query, body: await readBody(visit.request, bound.operation, reading) }
}

async function readForwarded(
  { visit, bound, proxy }: HttpCall,
  params: Fields,
  query: Fields,
  reading: Reading,
): Promise<RawInput> {
  const { body, raw } = await readRawBody(visit.request, bound.operation, reading)
  const forwarded: ForwardedRequest = {
    body: raw,
    headers: forwardedHeaders(visit.request.headers),
    request: (upstreamRequest) => proxy.request(upstreamRequest),
  }
  return { params, query, body, forwarded }
}

/** How the body of this call is read. Its memory is freed when the connection has the answer. */
function readingOf(
  { visit, bound, readLarge, bodies }: HttpCall,
  params: Fields,
  query: Fields,
  onArrival: (bytes: number) => void,
): Reading {
  const { request, response } = visit
  const isPaid = bound.operation.price !== null && headerPayments(request.headers).length > 0
  // Of the calls of a priced route that are read, trial calls have no credential.
  const isFree = bound.operation.price === null || (!isPaid && headerToken(request.headers) === null)
  return {
    ...(bodies ? { storage: isFree ? bodies.free : bodies.paid } : {}),
    ...(readLarge ? { readLarge: (bytes: Buffer) => readLarge(bound, { bytes, params, query, isPaid }) } : {}),
    address: visit.from.address,
    whenArrived(body) {
      if (body.isLarge) releaseWithAnswer(response, () => body.release())
      onArrival(body.size)
    },
  }
}

/** Calls `release` when a response has ended, however it ends. */
export function releaseWithAnswer(response: ServerResponse, release: () => void): void {
  if (response.closed) release()
  else response.once('close', release)
}
