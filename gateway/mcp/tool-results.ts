/** Turns an Answer into an MCP tool result, as specified by x402's MCP transport and as existing clients expect it. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { Answer } from '../calls/request-and-answer.ts'
import { errorBody, InvalidInput, type ServiceError } from '../errors.ts'
import { isObject } from '../validation/json.ts'
import { receiptObject } from '../x402/settlement-response.ts'
import type { Tool } from './tools.ts'

type Body = Record<string, unknown>

/**
 * Returns the result of a call. Refusals have `isError`. A 402 has the v2 PaymentRequired object as structuredContent,
 * as text and in _meta["x402/error"], because clients look in different places. A receipt is in
 * _meta["x402/payment-response"].
 */
export function toolResult(answer: Answer, tool: Tool, callId: string): CallToolResult {
  const meta: Body = { call_id: callId }
  if (answer.receipt) meta['x402/payment-response'] = receiptObject(answer.receipt)
  if (answer.quote && answer.error) {
    const { code, message, retry } = answer.error
    const required: Body = { ...answer.quote.v2, code, message, retry, call_id: callId }
    meta['x402/error'] = required
    return { isError: true, structuredContent: required, content: [textOf(required)], _meta: meta }
  }
  if (answer.error) {
    const seconds = answer.headers['retry-after']
    const retryAfter = seconds === undefined ? {} : { retry_after_seconds: Number(seconds) }
    const body: Body = { ...errorBody(withArgumentNames(answer.error, tool)), ...retryAfter, call_id: callId }
    return { isError: true, structuredContent: body, content: [textOf(body)], _meta: meta }
  }
  return { ...contentOf(answer), _meta: meta }
}

/** Names each invalid argument as the MCP client sent it. */
function withArgumentNames(error: ServiceError, tool: Tool): ServiceError {
  return error instanceof InvalidInput ? new InvalidInput(error.detail.map((item) => tool.locate(item))) : error
}

function contentOf({
  headers,
  body,
  status,
}: Answer): Pick<CallToolResult, 'content' | 'structuredContent' | 'isError'> {
  const text = body.toString('utf8')
  const failed = status >= 400 ? { isError: true } : {}
  const content: CallToolResult['content'] = [{ type: 'text', text }]
  if (!/^application\/([\w.-]+\+)?json\b/.test(headers['content-type'] ?? '')) return { ...failed, content }
  const value: unknown = JSON.parse(text)
  return { ...failed, content, ...(isObject(value) ? { structuredContent: value } : {}) }
}

const textOf = (value: Body): { type: 'text'; text: string } => ({ type: 'text', text: JSON.stringify(value) })
