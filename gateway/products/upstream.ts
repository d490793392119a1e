/** Products without code: an upstream answers their operations, as a whole or as a stream. */
import type { Writable } from 'node:stream'
import { FORM_MEDIA, isForm } from '../catalog/operation-validators.ts'
import { InvalidInput, NotFound, ServiceError, Unavailable } from '../errors.ts'
import { upstreamAddress } from '../catalog/product-drafts.ts'
import type { JsonSchema, Operation, OperationId, Product, Upstream } from '../plugin/catalog.ts'
import { type Call, type Handler, type Input, Reply } from '../plugin/plugin.ts'
import { timeoutSignal } from '../plugin/timeout-signal.ts'
import { isFile } from '../validation/json-schema.ts'
import { isObject } from '../validation/json.ts'
import { placeFields, type UpstreamCall } from './upstream-parameters.ts'

const JSON_MEDIA = 'application/json'

/** An operation and its upstream. */
interface Route {
  readonly upstream: Upstream
  readonly operation: Operation
  readonly target: UpstreamCall
}

/** Headers and query fields that a document sets, with its secrets filled in. */
export type FixedFields = Pick<Upstream, 'headers' | 'query'>

/** Those of a product, and of its operations by id. */
export interface FilledFields {
  readonly upstream: FixedFields
  readonly operations: Readonly<Record<OperationId, { readonly upstream: FixedFields }>>
}

/** What a product and its operations send to the upstream, as the document writes it. */
export function fixedFields({ upstream, operations }: Pick<Product, 'upstream' | 'operations'>): FilledFields {
  const fixed = (part: FixedFields | null): FixedFields => ({ headers: part?.headers ?? {}, query: part?.query ?? {} })
  return {
    upstream: fixed(upstream),
    operations: Object.fromEntries(operations.map((each) => [each.id, { upstream: fixed(each.upstream) }])),
  }
}

/** Creates one handler for each operation of the product. */
export function createUpstream(product: Product, filled: FilledFields): Record<string, Handler> {
  const upstream = product.upstream as Upstream
  return Object.fromEntries(
    product.operations.map((operation) => {
      const route = { upstream, operation, target: targetOf(upstream, operation, filled) }
      return [operation.handler, (call: Call) => (upstream.stream ? stream(route, call) : forward(route, call))]
    }),
  )
}

function targetOf(upstream: Upstream, { id, upstream: own }: Operation, filled: FilledFields): UpstreamCall {
  const fixed = filled.operations[id]?.upstream
  const headers = Object.entries({ ...filled.upstream.headers, ...fixed?.headers })
  return {
    url: upstreamAddress(upstream.url, own?.url ?? null),
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    query: { ...filled.upstream.query, ...fixed?.query },
    parameters: own?.parameters ?? [],
  }
}

/** Calls the upstream and reads the whole answer. */
async function forward({ upstream, operation, target }: Route, { input, signal, id }: Call): Promise<unknown> {
  const sent = await bodyOf(operation, input)
  const type = sent ? { 'content-type': sent.type } : {}
  const isText = operation.response?.['type'] === 'string'
  const { url, headers } = placeFields(target, input)
  const response = await within(upstream.timeoutSeconds, signal, (until) =>
    fetch(url, {
      method: operation.method,
      headers: { accept: isText ? '*/*' : 'application/json', ...type, 'x-call-id': id, ...headers },
      ...(sent ? { body: sent.bytes } : {}),
      redirect: 'manual',
      signal: until,
    }).then(async (answer) => ({
      answer,
      bytes: answer.ok ? await readAll(answer, upstream.maxBytes) : await discard(answer),
    })),
  )
  const { answer, bytes } = response
  if (!answer.ok) throw refusal(answer.status, answer.headers.get('retry-after'))
  if (answer.status === NO_CONTENT && allowsNull(operation.response)) return null
  if (!isText) return parsed(bytes)
  return new Reply(bytes, { headers: { 'content-type': answer.headers.get('content-type') ?? 'text/plain' } })
}

/** Calls the upstream and resolves when the answer begins. */
async function stream(
  { upstream, operation, target }: Route,
  { input, signal, id, access }: Call,
): Promise<StreamedReply> {
  const { forwarded } = input as ForwardedInput
  if (!forwarded) throw new Error('a stream can only be sent over HTTP')
  const { body } = forwarded
  const { url, headers } = placeFields(target, input)
  const response = await within(upstream.timeoutSeconds, signal, (until) =>
    forwarded.request({
      url,
      method: operation.method,
      headers: { ...forwarded.headers, ...(body ? { 'content-type': body.type } : {}), 'x-call-id': id, ...headers },
      body: body?.bytes ?? null,
      idleSeconds: upstream.timeoutSeconds,
      signal: until,
    }),
  )
  const isSuccess = response.status >= 200 && response.status < 300 && response.status !== 204
  const isUnsold = access.kind === 'payment' && response.headers['content-length'] === '0'
  if (isSuccess && !isUnsold) return new StreamedReply(response)
  response.discard()
  if (isSuccess) throw new ServiceError('empty_not_sold')
  throw refusal(response.status, response.headers['retry-after'] ?? null)
}

/** Runs the exchange with an upstream. Throws `product_timeout` if it takes too long, and an Error if it fails. */
async function within<Value>(
  seconds: number,
  signal: AbortSignal,
  work: (until: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const timeout = timeoutSignal(seconds * 1000)
  try {
    return await work(AbortSignal.any([signal, timeout]))
  } catch (error) {
    if (error instanceof ServiceError || error instanceof BadAnswer) throw error
    if (timeout.aborted) throw new ServiceError('product_timeout', undefined, { cause: error })
    throw new Error('the upstream could not be reached', { cause: error })
  }
}

/** The upstream answered with more than the product accepts. */
class BadAnswer extends Error {}

const NO_CONTENT = 204

/** Whether an answer may be null, as one without content is. */
function allowsNull(response: JsonSchema | null): boolean {
  return [response ?? {}, ...((response?.['anyOf'] ?? []) as JsonSchema[])].some(({ type }) =>
    [type].flat().includes('null'),
  )
}

/**
 * Returns the body as it was sent. A call that did not arrive over HTTP has a value instead, which is encoded in the
 * operation's first media type.
 */
async function bodyOf({ bodyMedia: [media = JSON_MEDIA] }: Operation, input: Call['input']): Promise<RawBody | null> {
  const { body, forwarded } = input as ForwardedInput
  if (forwarded) return forwarded.body
  if (body === undefined) return null
  if (media === JSON_MEDIA) return { type: media, bytes: Buffer.from(JSON.stringify(body)) }
  const fields = Object.entries(isObject(body) ? body : {})
  const [file] = fields.map(([, value]) => value).filter(isFile)
  if (!isForm(media)) return { type: media, bytes: Buffer.from(file?.bytes ?? '') }
  const form = media === FORM_MEDIA[0] ? new FormData() : new URLSearchParams()
  for (const [name, value] of fields)
    for (const item of [value].flat())
      if (isFile(item) && form instanceof FormData) form.append(name, new Blob([item.bytes]), name)
      else form.append(name, isObject(item) ? JSON.stringify(item) : String(item))
  const written = new Response(form)
  return { type: written.headers.get('content-type') ?? media, bytes: Buffer.from(await written.arrayBuffer()) }
}

async function readAll(response: Response, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > maxBytes) throw new BadAnswer(`the upstream sent more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function discard(response: Response): Promise<Buffer> {
  await response.body?.cancel()
  return Buffer.alloc(0)
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new Error('the answer of the upstream is not JSON', { cause: error })
  }
}

/**
 * Translates a status outside 2xx for the caller. A redirect is a failure, because it could lead anywhere with our
 * secrets. A refusal of the request is for the caller to correct, and not a failure of the product.
 */
function refusal(status: number, retryAfter: string | null): Error {
  if (status === 404) return new NotFound()
  if (status === 413) return new ServiceError('body_too_large')
  if (status === 415) return new ServiceError('media_unsupported')
  if ([400, 409, 416, 422].includes(status))
    return new InvalidInput(`The source of this product refused the request (status ${status}).`)
  if (status === 429 || status === 503) return new Unavailable(undefined, waitSeconds(retryAfter))
  return new Error(`the upstream answered ${status}`)
}

const USUAL_WAIT_SECONDS = 60
const LONGEST_WAIT_SECONDS = 3_600

/** How long a Retry-After asks to wait: a number of seconds or a date, from a second to an hour; a minute if it is neither. */
function waitSeconds(retryAfter: string | null): number {
  const text = retryAfter?.trim() ?? ''
  const isDate = /^[A-Z][a-z]{2}, .* GMT$/.test(text)
  const seconds = isDate ? (Date.parse(text) - Date.now()) / 1000 : /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(seconds)) return USUAL_WAIT_SECONDS
  return Math.ceil(Math.min(Math.max(seconds, 1), LONGEST_WAIT_SECONDS))
}

/** The parts of a caller's HTTP request that an upstream receives beside the validated input. */
export interface ForwardedRequest {
  /** Null if the caller sent no body. */
  readonly body: RawBody | null
  /** The caller's headers that may be forwarded. */
  readonly headers: Readonly<Record<string, string>>
  /** Sends a request whose response can be streamed. Rejects if the upstream does not respond. */
  request(to: UpstreamRequest): Promise<UpstreamResponse>
}

/** A body exactly as it was sent. */
export interface RawBody {
  /** The content-type with its parameters. */
  readonly type: string
  readonly bytes: Buffer
}

export interface UpstreamRequest {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
  /** Ends a response that sends nothing for this long. */
  readonly idleSeconds: number
  /** Cancels the request until the response begins. */
  readonly signal: AbortSignal
}

/** A response that has begun: its status and headers have arrived, its body has not been read. */
export interface UpstreamResponse {
  readonly status: number
  /** The upstream's headers that may reach the caller. */
  readonly headers: Readonly<Record<string, string>>
  /** Streams the body to `to` and ends it. Resolves when the stream has ended, even if it failed. */
  pipe(to: Writable): Promise<void>
  /** Closes the response unread. Does nothing once `pipe` was called. */
  discard(): void
}

/** The input of an operation that an upstream answers. */
export interface ForwardedInput extends Input {
  /** Absent if the call did not come over HTTP. */
  readonly forwarded?: ForwardedRequest
}

/** A handler's answer whose body is still arriving from the upstream. */
export class StreamedReply extends Reply<undefined> {
  readonly response: UpstreamResponse

  constructor(response: UpstreamResponse) {
    const { 'retry-after': _, ...headers } = response.headers
    super(undefined, { status: response.status, headers })
    this.response = response
  }
}
