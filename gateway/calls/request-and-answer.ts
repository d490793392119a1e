/** The request that a transport hands to `serve`, and the answer. Neither side knows the wire format of the other. */
import type { Awaitable } from '../awaitable.ts'
import type { BoundOperation, Edition, RawInput } from '../products/edition.ts'
import type { Caller } from '../workers/timeout.ts'
import type { UpstreamResponse } from '../products/upstream.ts'
import type { ServiceError } from '../errors.ts'
import type { PaymentRecord } from '../payments/journal/journal.ts'
import type { PaymentRequest } from '../payments/payment.ts'
import type { Quote } from '../x402/challenge.ts'
import type { Receipt } from '../x402/settlement-response.ts'
import type { AnswerBody } from '../plugin/answer-body.ts'
import type { ServerEvent, StreamRequest } from '../plugin/plugin.ts'

/** Payments and access token as the caller sent them: undecoded, from whichever header, argument or _meta they came. */
export interface Credential {
  /** Base64 text (headers, payment_signature) or the payload object itself (MCP _meta). Two different payments are refused. */
  readonly payments: readonly (string | Readonly<Record<string, unknown>>)[]
  readonly token: string | null
}

export interface CallRequest extends PaymentRequest {
  readonly transport: 'http' | 'mcp'
  /** Public absolute URL of the resource with its query, always below BASE_URL. */
  readonly url: string
  /** Null when the caller sent neither a payment nor a token. */
  readonly credential: Credential | null
  /** Set if the caller only asks what a call costs: then it is no trial call. */
  readonly isProbe?: true
  /** Leaves when the connection closes before the whole answer was sent. */
  readonly caller: Caller
  /** Set when the caller accepts server-sent events. */
  readonly stream?: StreamRequest
  /**
   * Takes a place among the open event streams, before the answer is paid for. Throws RateLimited if there is none. Absent
   * where no event stream can be sent.
   * @param isByToken whether the access token of the call opens it
   */
  takeStreamPlace?(isByToken: boolean): void
  /** Calls `listener` once the whole answer was sent; never if the caller disconnected before that. */
  onSent(listener: () => void): void
  /**
   * Reads and decodes the body; returns at once if the operation takes none. Called at most once, and not at all for an
   * unpaid call of a priced route.
   * @param onArrival called once the body has arrived, before it is decoded; what it throws refuses the call
   */
  read(onArrival?: () => void): Awaitable<RawInput>
}

/** A call on its way through the gateway. One edition serves it from start to end, also when the catalog changes. */
export interface IncomingCall {
  readonly edition: Edition
  readonly bound: BoundOperation
  readonly request: CallRequest
}

export interface Answer {
  readonly status: number
  /** Lower-case names; includes content-type when there is a body. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: AnswerBody
  /** The handler's value when this call ran it, or its JsonReply: views and MCP render it. `valueOf` parses it. */
  readonly value?: unknown
  /** Set on refusals and failures. */
  readonly error?: ServiceError
  /** Set on every 402: what to pay. */
  readonly quote?: Quote
  /** Set when a payment was settled, or its settlement failed or is pending. */
  readonly receipt?: Receipt
  /** The journal's record of the payment, beside a successful receipt. */
  readonly record?: PaymentRecord
  /** Server-sent events instead of a body. */
  readonly events?: AsyncIterable<ServerEvent>
  /** Bytes of an upstream instead of a body: the transport pipes them to the caller, or drops them. */
  readonly stream?: UpstreamResponse
}
