/** Turns a handler's value, a quote or an error into the bytes a caller gets. */
import { isConstant, isShared } from '../plugin/immutable.ts'
import { StreamedReply } from '../products/upstream.ts'
import { errorBody, ServiceError } from '../errors.ts'
import type { Quote } from '../x402/challenge.ts'
import { AnswerBody } from '../plugin/answer-body.ts'
import { JsonReply, Reply } from '../plugin/plugin.ts'
import type { Answer } from './request-and-answer.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

/** Answers of shared values, such as documents: each is serialized once. Those that are only viewed have no body. */
const sharedAnswers = { sent: new WeakMap<object, Answer>(), viewed: new WeakMap<object, Answer>() }
const madeOfShared = new WeakSet<Answer>()
const madeOfConstants = new WeakSet<Answer>()

/** True if the value of this answer never changes: every call with the same input gets this very answer. */
export function isConstantAnswer(answer: Answer): boolean {
  return madeOfConstants.has(answer)
}

/** Returns true if several calls may get this very answer, so its serialised form is worth caching. */
export function isSharedAnswer(answer: Answer): boolean {
  return madeOfShared.has(answer)
}

/**
 * The answer for the value a handler returned.
 *
 * A Reply sets status and headers. The bytes of a JsonReply are sent unchanged, and so is a string or Buffer if the reply
 * names a content-type; everything else is JSON; undefined is an empty body.
 *
 * @param onlyViewed the value is only shown as a page: it is not serialized, the transport renders it
 */
export function answerOf(value: unknown, onlyViewed = false): Answer {
  if (!isShared(value)) return serialize(value, onlyViewed)
  const answers = onlyViewed ? sharedAnswers.viewed : sharedAnswers.sent
  const known = answers.get(value)
  if (known) return known
  const answer = serialize(value, onlyViewed)
  answers.set(value, answer)
  madeOfShared.add(answer)
  if (isConstant(value)) madeOfConstants.add(answer)
  return answer
}

function serialize(value: unknown, onlyViewed: boolean): Answer {
  const reply = value instanceof Reply ? value : new Reply(value)
  if (reply.source)
    return { status: reply.status, headers: reply.headers, body: AnswerBody.empty, events: reply.source }
  if (reply instanceof StreamedReply)
    return { status: reply.status, headers: reply.headers, body: AnswerBody.empty, stream: reply.response }
  if (reply instanceof JsonReply && !onlyViewed)
    return {
      status: reply.status,
      headers: { 'content-type': JSON_TYPE, ...lowerCase(reply.headers) },
      body: reply.json,
      value: reply,
    }
  const headers = lowerCase(reply.headers)
  const { body } = reply
  if (headers['content-type'] !== undefined && (typeof body === 'string' || Buffer.isBuffer(body)))
    return { status: reply.status, headers, body: AnswerBody.of(body), value: body }
  if (body === undefined || onlyViewed) return { status: reply.status, headers, body: AnswerBody.empty, value: body }
  return {
    status: reply.status,
    headers: { 'content-type': JSON_TYPE, ...headers },
    body: AnswerBody.of(JSON.stringify(body)),
    value: body,
  }
}

/** True for an answer that is charged for, or counted: one with content, and a status that says that all went well. */
export function isSaleable({ status, body, stream, events }: Answer): boolean {
  return status >= 200 && status <= 299 && (body.length > 0 || stream !== undefined || events !== undefined)
}

type Headers = Answer['headers']

function lowerCase(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, text]) => [name.toLowerCase(), text]))
}

/** The handler's value behind an answer. Prepared JSON is parsed only now. */
export function valueOf({ value }: Pick<Answer, 'value'>): unknown {
  return value instanceof JsonReply ? value.body : value
}

/** Serialized quotes: the quote of an operation at its bare address is one object, serialized once. */
const quoteBodies = new WeakMap<Quote, AnswerBody>()

/** The 402. The body is the v1 object; the transport adds the header with the v2 object. */
export function quoteAnswer(error: ServiceError, quote: Quote): Answer {
  let body = quoteBodies.get(quote)
  if (!body) quoteBodies.set(quote, (body = AnswerBody.of(JSON.stringify(quote.v1))))
  return { status: error.status, headers: { 'content-type': JSON_TYPE, ...error.headers }, body, error, quote }
}

/** After most faults a call works again within five seconds, and a caller should not be what takes longer. */
const RETRY_SECONDS = 2

/** The answer to a refused call. Of anything but a ServiceError the caller learns only the call id. */
export function errorAnswer(thrown: unknown, callId: string): Answer {
  const error =
    thrown instanceof ServiceError
      ? thrown
      : new ServiceError('internal', `Something failed on our side; quote call ${callId}.`, { cause: thrown })
  const waits = error.retry === 'after_delay' || error.retry === 'same_payment'
  return {
    status: error.status,
    headers: {
      'content-type': JSON_TYPE,
      ...(waits ? { 'retry-after': String(RETRY_SECONDS) } : {}),
      ...error.headers,
    },
    body: AnswerBody.of(JSON.stringify({ ...errorBody(error), call_id: callId })),
    error,
  }
}
