/** Turns an Answer into an MCP tool result, as specified by x402's MCP transport and as existing clients expect it. */
import type { Answer } from '../calls/request-and-answer.ts'
import { errorBody, InvalidInput, type ServiceError, type ValidationItem } from '../errors.ts'
import { isObject } from '../validation/json.ts'
import type { Quote } from '../x402/challenge.ts'
import { receiptObject } from '../x402/settlement-response.ts'
import type { Tool } from './tools.ts'

/** A tool result in pieces of JSON: an answer is in it twice, and is serialized once. */
interface ResultParts {
  /** Members of _meta beside call_id, each preceded by a comma. */
  readonly meta: string
  /** A JSON string. */
  readonly text: string
  /** Absent if the answer is not a JSON object. */
  readonly structured?: string | undefined
  readonly isError: boolean
}

/**
 * Returns the JSON of a CallToolResult. Refusals have `isError`. A 402 has the v2 PaymentRequired object as
 * structuredContent, as text and in _meta["x402/error"], because clients look in different places; the requirements of v1
 * are in its field `v1`. `mistakes` in the arguments are told with the price. A receipt is in
 * _meta["x402/payment-response"].
 */
export function toolResult(
  answer: Answer,
  tool: Tool,
  callId: string,
  mistakes: readonly ValidationItem[] = [],
): string {
  const receipt = answer.receipt ? `,"x402/payment-response":${JSON.stringify(receiptObject(answer.receipt))}` : ''
  const { meta, text, structured, isError } = partsOf(answer, tool, callId, mistakes)
  return (
    `{"_meta":{"call_id":${JSON.stringify(callId)}${receipt}${meta}},"content":[{"type":"text","text":${text}}]` +
    `${structured === undefined ? '' : `,"structuredContent":${structured}`}${isError ? ',"isError":true' : ''}}`
  )
}

function partsOf(answer: Answer, tool: Tool, callId: string, mistakes: readonly ValidationItem[]): ResultParts {
  if (answer.quote && answer.error) {
    const invalid = mistakes.length === 0 ? null : withArgumentNames(new InvalidInput(mistakes), tool)
    return requirementsOf(answer.quote, answer.error, callId, invalid)
  }
  if (answer.error) {
    const seconds = answer.headers['retry-after']
    const retryAfter = seconds === undefined ? {} : { retry_after_seconds: Number(seconds) }
    const body = { ...errorBody(withArgumentNames(answer.error, tool)), ...retryAfter, call_id: callId }
    const structured = JSON.stringify(body)
    return { meta: '', text: JSON.stringify(structured), structured, isError: true }
  }
  const isError = answer.status >= 400
  const { text, structured } = contentOf(answer)
  // Clients check an object by the schema of the answer, which the body of a failure need not fit.
  return { meta: '', text, ...(isError && tool.definition.outputSchema ? {} : { structured }), isError }
}

/** The v2 object of a quote without its closing brace, as JSON and as the beginning of a JSON string. */
interface SerializedQuote {
  readonly json: string
  readonly text: string
}

/** The quote of an operation at its bare address is one object, serialized once. */
const serializedQuotes = new WeakMap<Quote, SerializedQuote>()

function serialize(quote: Quote): SerializedQuote {
  const json = JSON.stringify({ ...quote.v2, v1: requirementsV1(quote) }).slice(0, -1)
  const serialized = { json, text: JSON.stringify(json).slice(0, -1) }
  serializedQuotes.set(quote, serialized)
  return serialized
}

/** What a v1 client signs. The tool list has the schema of the call. */
function requirementsV1({ v1 }: Quote): Readonly<Record<string, unknown>> {
  return { x402Version: 1, accepts: v1.accepts.map(({ outputSchema: _schema, ...requirement }) => requirement) }
}

/**
 * A 402: the v2 object, with code, message, retry, the freshness of the data and the call's id beside its fields, and
 * what the product would refuse of the arguments.
 */
function requirementsOf(
  quote: Quote,
  { code, message, retry }: ServiceError,
  callId: string,
  invalid: InvalidInput | null,
): ResultParts {
  const { json, text } = serializedQuotes.get(quote) ?? serialize(quote)
  const { freshness } = quote.v1
  const told = invalid
    ? { message: `Correct the arguments before you pay: ${invalid.message}. ${message}`, detail: invalid.detail }
    : { message }
  const more = `,${JSON.stringify({ code, ...told, retry, freshness, call_id: callId }).slice(1)}`
  const structured = json + more
  return {
    meta: `,"x402/error":${structured}`,
    text: text + JSON.stringify(more).slice(1),
    structured,
    isError: true,
  }
}

/** Names each invalid argument as the MCP client sent it. */
function withArgumentNames<Kind extends ServiceError>(error: Kind, tool: Tool): Kind | InvalidInput {
  return error instanceof InvalidInput ? new InvalidInput(error.detail.map((item) => tool.locate(item))) : error
}

function contentOf({ headers, body, value }: Answer): Pick<ResultParts, 'text' | 'structured'> {
  const json = body.toString()
  const text = JSON.stringify(json)
  if (!/^application\/([\w.-]+\+)?json\b/.test(headers['content-type'] ?? '')) return { text }
  // The gateway itself has just serialized an object, or the handler has written one.
  if (isObject(value) && !Buffer.isBuffer(value) && json.startsWith('{')) return { text, structured: json }
  const parsed = parse(json)
  return isObject(parsed) ? { text, structured: JSON.stringify(parsed) } : { text }
}

/**
 * The JSON value, or null if the text is none: an upstream may name a type that its answer does not have. The answer is paid
 * by now, so it is sent as it is.
 */
function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
