/** A handler's value, or an error, as the bytes a caller gets. */
import { isConstant } from '../catalog/frozen.ts'
import { Streamed } from '../editions/upstream-request.ts'
import { errorBody, ServiceError } from '../errors.ts'
import type { Quote } from '../x402/quotes.ts'
import { Reply } from '../plugin/plugin.ts'
import type { Answer } from './call.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

const ofConstants = new WeakMap<object, Answer>()

/** The answer of a handler's value; of one that never changes, such as a document, it is made once. */
export function answerOf(value: unknown, onlyViewed = false): Answer {
  if (onlyViewed || !isConstant(value)) return madeOf(value, onlyViewed)
  const answer = ofConstants.get(value) ?? madeOf(value, false)
  ofConstants.set(value, answer)
  return answer
}

/**
 * A Reply brings its status and headers; a string or Buffer whose reply names a content-type is sent as it is;
 * everything else is JSON; undefined is an empty body. What only a view shows is left as the value it is: the transport
 * renders it.
 */
function madeOf(value: unknown, onlyViewed: boolean): Answer {
  const reply = value instanceof Reply ? value : new Reply(value)
  if (reply.source) return { status: reply.status, headers: reply.headers, body: Buffer.alloc(0), events: reply.source }
  if (reply instanceof Streamed)
    return { status: reply.status, headers: reply.headers, body: Buffer.alloc(0), stream: reply.carried }
  const headers = Object.fromEntries(Object.entries(reply.headers).map(([name, text]) => [name.toLowerCase(), text]))
  const { body } = reply
  if (headers['content-type'] !== undefined && (typeof body === 'string' || Buffer.isBuffer(body)))
    return { status: reply.status, headers, body: Buffer.from(body), value: body }
  if (body === undefined || onlyViewed) return { status: reply.status, headers, body: Buffer.alloc(0), value: body }
  return {
    status: reply.status,
    headers: { 'content-type': JSON_TYPE, ...headers },
    body: Buffer.from(JSON.stringify(body)),
    value: body,
  }
}

/** Bytes of quotes: the challenge of an operation at its bare address is one object and is written once. */
const written = new WeakMap<Quote, Buffer>()

/** The 402: the v1 object as body; the transport adds the header with the v2 object. */
export function quoteAnswer(error: ServiceError, quote: Quote): Answer {
  let body = written.get(quote)
  if (!body) written.set(quote, (body = Buffer.from(JSON.stringify(quote.v1))))
  return { status: error.status, headers: { 'content-type': JSON_TYPE, ...error.headers }, body, error, quote }
}

/** The answer of a refusal. Anything but a ServiceError shows the call id and nothing else. */
export function errorAnswer(thrown: unknown, callId: string): Answer {
  const error =
    thrown instanceof ServiceError
      ? thrown
      : new ServiceError('internal', `Something failed on our side; quote call ${callId}.`, { cause: thrown })
  const waits = error.retry === 'after_delay' || error.retry === 'same_payment'
  return {
    status: error.status,
    headers: { 'content-type': JSON_TYPE, ...(waits ? { 'retry-after': '5' } : {}), ...error.headers },
    body: Buffer.from(JSON.stringify({ ...errorBody(error), call_id: callId })),
    error,
  }
}
