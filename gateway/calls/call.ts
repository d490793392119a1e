/** What a transport hands to `serve`, and what it gets back. Neither side knows the other's wire. */
import type { RawInput } from '../editions/edition.ts'
import type { Carried } from '../editions/upstream-request.ts'
import type { ServiceError } from '../errors.ts'
import type { Quote } from '../x402/quotes.ts'
import type { Receipt } from '../x402/settlement-response.ts'
import type { ServerEvent, StreamWish } from '../plugin/plugin.ts'

/** Payments and token as presented: undecoded, from whichever header, argument or _meta they came. */
export interface Credential {
  /** Base64 text (headers, payment_signature) or the payload object itself (MCP _meta). Different payments: refused. */
  readonly payments: readonly (string | Readonly<Record<string, unknown>>)[]
  readonly token: string | null
}

export interface CallRequest {
  /** Shown to the caller, in logs and in errors. */
  readonly id: string
  readonly transport: 'http' | 'mcp'
  /** Public absolute URL of the resource with its query, always below BASE_URL. */
  readonly url: string
  /** Null: nothing was presented. */
  readonly credential: Credential | null
  /** HTTP header Idempotency-Key, as sent. */
  readonly idempotencyKey?: string
  /** Where the call comes from: an IPv4 address, or the /64 of an IPv6 one. */
  readonly client: string
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal
  /** Set where the caller would take server-sent events. */
  readonly stream?: StreamWish
  /** Calls back once the whole answer has left; never where the caller was gone before. */
  onSent(listener: () => void): void
  /** Reads and decodes the body; called at most once, and not at all for a bare call of a priced route. */
  read(): Promise<RawInput>
}

export interface Answer {
  readonly status: number
  /** Lower-case names; content-type included where there is a body. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The handler's value, where this answer was made now: views and MCP read it. */
  readonly value?: unknown
  /** Set on refusals and failures. */
  readonly error?: ServiceError
  /** Set on every 402: what to pay. */
  readonly quote?: Quote
  /** Set where a payment was settled, or its settlement failed or is pending. */
  readonly receipt?: Receipt
  /** Server-sent events instead of a body. */
  readonly events?: AsyncIterable<ServerEvent>
  /** Bytes of an upstream instead of a body: passed on by the transport, or dropped. */
  readonly stream?: Carried
}
