/** Calls of MCP tools as HTTP requests, so that the buyer of `tollgate/client` buys them as it buys routes. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { type CallToolResult, CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js'

const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const
/** The buyer ends an attempt before. */
const MAX_MS = 600_000

/** The address of a tool. The buyer tells requests apart by it. */
export function toolUrl(endpoint: URL, tool: string): URL {
  const url = new URL(endpoint)
  url.hash = tool
  return url
}

/**
 * Creates a `fetch` that calls the tool of an address that `toolUrl` made, with the JSON of the body as its arguments, and fetches
 * any other address. The answer has the result of the tool as its body, and in headers what an HTTP answer says: the price, the
 * receipt, and when to come back.
 */
export function createToolFetch(service: Client): typeof fetch {
  return async (input, init) => {
    const { hash } = new URL(input instanceof Request ? input.url : input)
    if (hash === '') return fetch(input, init)
    const payment = new Headers(init?.headers)
    const header = PAYMENT_HEADERS.map((name) => payment.get(name)).find((value) => value !== null)
    const params = {
      name: decodeURIComponent(hash.slice(1)),
      arguments: JSON.parse(typeof init?.body === 'string' ? init.body : '{}') as Record<string, unknown>,
      ...(header ? { _meta: { 'x402/payment': JSON.parse(Buffer.from(header, 'base64').toString()) as unknown } } : {}),
    }
    const result = await service.request({ method: 'tools/call', params }, CallToolResultSchema, {
      ...(init?.signal ? { signal: init.signal } : {}),
      timeout: MAX_MS,
    })
    return responseOf(result)
  }
}

/** The members of a refusal that the buyer reads. */
interface Refusal {
  readonly accepts?: unknown
  readonly code?: unknown
  readonly retry?: unknown
  readonly retry_after_seconds?: number
}

function responseOf(result: CallToolResult): Response {
  const receipt = result._meta?.['x402/payment-response']
  const headers = new Headers(receipt === undefined ? {} : { 'payment-response': base64(receipt) })
  if (!result.isError) return new Response(JSON.stringify({ result }), { headers })
  const refusal = (result.structuredContent ?? {}) as Refusal
  const { accepts, code, retry, retry_after_seconds: seconds } = refusal
  if (seconds !== undefined) headers.set('retry-after', String(seconds))
  if (Array.isArray(accepts)) headers.set('payment-required', base64(refusal))
  const status = Array.isArray(accepts) ? 402 : code === 'rate_limited' ? 429 : retry === 'same_payment' ? 503 : 400
  return new Response(JSON.stringify({ code, retry, result }), { status, headers })
}

/** The result of the tool that an answer has. */
export async function resultOf(response: Response): Promise<CallToolResult> {
  const { result } = (await response.json()) as { readonly result: CallToolResult }
  return result
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
