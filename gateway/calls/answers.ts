/** Turns a handler's value, a quote or an error into the bytes a caller gets. */
import { isConstant } from '../catalog/immutable.ts'
import { StreamedReply } from '../editions/upstream.ts'
import { errorBody, ServiceError } from '../errors.ts'
import type { Quote } from '../x402/challenge.ts'
import { Reply } from '../plugin/plugin.ts'
import type { Answer } from './request-and-answer.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

/** Answers of constant values, such as documents: each is serialized once. */
const constantAnswers = new WeakMap<object, Answer>()

/**
 * The answer for the value a handler returned.
 *
 * A Reply sets status and headers. A string or Buffer is sent unchanged if the reply names a content-type; everything
 * else is JSON; undefined is an empty body.
 *
 * @param onlyViewed the value is only shown as a page: it is not serialized, the transport renders it
 */
export function answerOf(value: unknown, onlyViewed = false): Answer {
  if (onlyViewed || !isConstant(value)) return serialize(value, onlyViewed)
  const answer = constantAnswers.get(value) ?? serialize(value, false)
  constantAnswers.set(value, answer)
  return answer
}

function serialize(value: unknown, onlyViewed: boolean): Answer {
  const reply = value instanceof Reply ? value : new Reply(value)
  if (reply.source) return { status: reply.status, headers: reply.headers, body: Buffer.alloc(0), events: reply.source }
  if (reply instanceof StreamedReply)
    return { status: reply.status, headers: reply.headers, body: Buffer.alloc(0), stream: reply.response }
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

/** Serialized quotes: the quote of an operation at its bare address is one object, serialized once. */
const quoteBodies = new WeakMap<Quote, Buffer>()

/** The 402. The body is the v1 object; the transport adds the header with the v2 object. */
export function quoteAnswer(error: ServiceError, quote: Quote): Answer {
  let body = quoteBodies.get(quote)
  if (!body) quoteBodies.set(quote, (body = Buffer.from(JSON.stringify(quote.v1))))
  return { status: error.status, headers: { 'content-type': JSON_TYPE, ...error.headers }, body, error, quote }
}

/** The answer to a refused call. Of anything but a ServiceError the caller learns only the call id. */
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
