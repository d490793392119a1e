/** Writes an Answer to the socket: page or data, headers, receipts, caching, compression. Nothing else sends answers. */
import { gzipSync } from 'node:zlib'
import type { Request, Response } from 'express'
import { LRUCache } from 'lru-cache'
import { errorAnswer, isConstantAnswer, isSharedAnswer } from '../calls/answers.ts'
import type { Answer } from '../calls/request-and-answer.ts'
import { AnswerBody } from '../plugin/answer-body.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Quote } from '../x402/challenge.ts'
import { receiptHeaders } from '../x402/settlement-response.ts'
import type { CallerAddresses } from './caller-address.ts'
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
  readonly callers: Pick<CallerAddresses, 'isOfProxy'>
  /** Aborts when the server begins to close: from then on no connection is kept alive. */
  readonly closing: { readonly signal: AbortSignal }
}

/** An answer as it is sent: the same for every caller who wants it in this form. */
interface Message {
  readonly status: number
  /** Names and values in turn, as `writeHead` takes them, without content-length and x-call-id. */
  readonly headers: readonly string[]
  /** Null for an event stream or an upstream's stream, which the caller of `respond` sends. */
  readonly body: AnswerBody | null
  readonly etag: string | undefined
}

/** The messages of a shared answer: an operation has one for each form and encoding. */
type Messages = Map<Operation, (Message | undefined)[]>

const sharedMessages = new WeakMap<Answer, Messages>()

/** Sends an answer. Of an event stream or an upstream's stream it sends the head; the caller sends the rest. */
export function respond(parts: ResponderParts, exchange: Exchange, answer: Answer): void {
  const { request, response, operation, browser } = exchange
  if (response.headersSent || response.destroyed) return
  const isGzip = operation?.price === null && isRead(request) && acceptsGzip(request)
  const messages = operation && isRead(request) ? messagesOf(answer, operation, browser) : null
  const form = (browser ? 2 : 0) + (isGzip ? 1 : 0)
  const known = messages?.[form]
  if (known) return send(parts, exchange, known)
  const message = messageOf(parts, exchange, answer, isGzip)
  // A page that could not be rendered is an answer to this call alone.
  if (messages && message.status === answer.status) messages[form] = message
  send(parts, exchange, message)
}

/** The messages that were made of this answer; null for an answer to one call. */
function messagesOf(answer: Answer, operation: Operation, browser: boolean): (Message | undefined)[] | null {
  // A page also shows what belongs to the catalog, so only an answer that changes with the catalog has lasting pages.
  const isPage = operation.view !== null && (browser || operation.response === null)
  if (!isSharedAnswer(answer) || (isPage && !isConstantAnswer(answer))) return null
  let messages = sharedMessages.get(answer)
  if (!messages) sharedMessages.set(answer, (messages = new Map()))
  let ofOperation = messages.get(operation)
  if (!ofOperation) messages.set(operation, (ofOperation = []))
  return ofOperation
}

function messageOf(parts: ResponderParts, exchange: Exchange, answer: Answer, isGzip: boolean): Message {
  const { request, operation, browser } = exchange
  const sent: Answer =
    operation?.form && browser
      ? { ...answer, status: 303, headers: { location: formTarget(operation.form, answer) }, body: AnswerBody.empty }
      : renderPage(parts, exchange, answer)
  const type = answer.stream ? undefined : sent.headers['content-type']
  const headers: Record<string, string> = {
    ...(type?.startsWith('text/html') ? parts.headers.page : parts.headers.data),
    ...sent.headers,
    'cache-control': cacheControl(operation, sent, request.method),
    ...(answer.quote ? { 'payment-required': answer.quote.header } : {}),
    ...(answer.receipt ? receiptHeaders(answer.receipt) : {}),
    ...(isNegotiated(operation) ? { vary: 'Accept' } : {}),
  }
  const { status } = sent
  if (answer.events) {
    headers['content-type'] = 'text/event-stream; charset=utf-8'
    headers['x-accel-buffering'] = 'no'
  }
  const { etag } = sent.headers
  if (answer.events || answer.stream) return { status, headers: inTurn(headers), body: null, etag }
  const isCompressible = operation?.price === null && isRead(request) && isWorthCompressing(type, sent.body)
  if (isCompressible) headers['vary'] = isNegotiated(operation) ? 'Accept, Accept-Encoding' : 'Accept-Encoding'
  if (isCompressible && isGzip) Object.assign(headers, gzipHeaders(etag))
  const body = isCompressible && isGzip ? gzipped(sent.body) : sent.body
  return { status, headers: inTurn(headers), body, etag }
}

function inTurn(headers: Readonly<Record<string, string>>): readonly string[] {
  const list: string[] = []
  // Half the time of Object.entries and flat, on every answer.
  for (const name in headers) list.push(name, headers[name] as string)
  return list
}

/** Writes a message, or 304 if the caller has it already. */
function send(
  { callers, closing }: ResponderParts,
  { request, response, operation, callId }: Exchange,
  message: Message,
): void {
  const { status, headers, body, etag } = message
  // A caller over its limit ends its connection, on which thousands of requests may follow.
  const isClosing = closing.signal.aborted || (status === 429 && !callers.isOfProxy(request))
  const own = ['x-call-id', callId, ...(isClosing ? ['connection', 'close'] : [])]
  if (body !== null && status === 200 && operation?.price === null && isFresh(request, etag)) {
    response.writeHead(304, [...withoutContent(headers), ...own]).end()
    return
  }
  response.writeHead(status, headers.concat(body ? ['content-length', String(body.length)] : [], own))
  if (body === null) return
  if (request.method === 'HEAD') response.end()
  else sendPieces(response, body.pieces)
}

/** Sends pieces in one write. */
function sendPieces(response: Response, pieces: readonly Buffer[]): void {
  if (pieces.length > 1) response.cork()
  for (let at = 0; at < pieces.length - 1; at += 1) response.write(pieces[at])
  response.end(pieces.at(-1))
}

/** Headers without those that describe the body. */
function withoutContent(headers: readonly string[]): readonly string[] {
  const named = Array.from({ length: headers.length / 2 }, (_, nth) => headers.slice(2 * nth, 2 * nth + 2))
  return named.filter(([name = '']) => !/^content-(?:type|encoding)$/.test(name)).flat()
}

/** True for the methods that only read. */
function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD'
}

const gzipByHeader = new LRUCache<string, boolean>({ max: 200 })

/** True if the caller accepts gzip. Parsed once for each value of the header, of which clients send few. */
function acceptsGzip(request: Request): boolean {
  const text = request.headers['accept-encoding']
  if (text === undefined) return false
  const known = gzipByHeader.get(text)
  if (known !== undefined) return known
  const accepted = request.acceptsEncodings('gzip') === 'gzip'
  if (text.length <= 200) gzipByHeader.set(text, accepted)
  return accepted
}

/** The headers of a 402 that depend on its operation and quote. */
export function challengeHeaders(operation: Operation, quote: Quote): Readonly<Record<string, string>> {
  return {
    'cache-control': NO_STORE,
    'payment-required': quote.header,
    ...(isNegotiated(operation) ? { vary: 'Accept' } : {}),
  }
}

/** True if the caller decides by Accept in which form the operation answers. */
function isNegotiated(operation: Operation | null): boolean {
  return operation !== null && operation.response !== null && (operation.view !== null || operation.rows !== null)
}

/** Renders the answer as a page if the caller wants one. If the view fails, the caller gets JSON. */
function renderPage(parts: ResponderParts, exchange: Exchange, answer: Answer): Answer {
  const { render, log } = parts
  const page = pageOf(answer, exchange)
  if (page === null) return answer
  try {
    // The ETag identifies the data, not the page.
    const { etag: _, ...headers } = answer.headers
    const body = AnswerBody.of(render(page.view, page.locals))
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
  if (known === undefined || etag === undefined || !isRead(request)) return false
  if (known.trim() === '*') return true
  return known.split(',').some((tag) => opaqueTag(tag) === opaqueTag(etag))
}

const opaqueTag = (tag: string): string => tag.trim().replace(/^W\//, '')

/** A shorter body fits one network packet anyway. */
const MIN_GZIP_BYTES = 1_400
/** Compression blocks the event loop, so longer bodies are sent as they are. */
const MAX_GZIP_BYTES = 2_000_000
const COMPRESSIBLE = /^(?:text\/|application\/(?:json|xml|linkset\+json|javascript)\b|image\/svg\+xml)/

/** Compressed bodies by plain body: that of a document is the same for every caller, so it is compressed once. */
const compressedBodies = new WeakMap<AnswerBody, AnswerBody>()

/** Only free answers are compressed: the receipt of a paid answer has the digest of its bytes. */
function isWorthCompressing(type: string | undefined, { length }: AnswerBody): boolean {
  return typeof type === 'string' && COMPRESSIBLE.test(type) && isCompressibleLength(length)
}

const isCompressibleLength = (length: number): boolean => length >= MIN_GZIP_BYTES && length <= MAX_GZIP_BYTES

/** Returns the body compressed with gzip. The same one is compressed only once. */
export function gzipped(body: AnswerBody): AnswerBody {
  const compressed = compressedBodies.get(body) ?? AnswerBody.of(gzipSync(body.bytes))
  compressedBodies.set(body, compressed)
  return compressed
}

/** The compressed body differs from the plain one, so the two can share only a weak ETag (RFC 9110, section 8.8.1). */
function gzipHeaders(etag: string | undefined): Readonly<Record<string, string>> {
  const encoding = { 'content-encoding': 'gzip' }
  return etag === undefined ? encoding : { ...encoding, etag: etag.startsWith('W/') ? etag : `W/${etag}` }
}
