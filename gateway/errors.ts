/**
 * Every way the gateway refuses a call, in one table. `code` is a closed union, so a `switch` over it is exhaustive.
 * The table is also the source of docs/errors.md.
 */

/**
 * The next step of an agent: `never` (give up), `after_fix` (change the request), `after_delay` (wait, then send the
 * same request), `new_quote` (sign a new payment), `same_payment` (send the same request with the same payment).
 */
export type Retry = 'never' | 'after_fix' | 'after_delay' | 'new_quote' | 'same_payment'

export interface ErrorKind {
  /** HTTP status. */
  readonly status: number
  readonly retry: Retry
  /** The `message` of the answer when nothing more exact is known; it includes advice. */
  readonly message: string
  /** When it happens, in one line. */
  readonly when: string
  /** The caller's remedy, in one line. */
  readonly action: string
}

/** Every error by its code. Codes are a promise to callers: they never change. */
export const ERRORS = {
  payment_required: {
    status: 402,
    retry: 'new_quote',
    message: 'Sign one of the payments in accepts and send the same request again.',
    when: 'A priced route was called without a payment and without an access token.',
    action: 'Sign one of the entries of accepts and send the same request again with the payment.',
  },
  payment_invalid: {
    status: 402,
    retry: 'new_quote',
    message: 'The payment was not accepted; nothing was charged. Sign a fresh one.',
    when: 'The payment cannot be read or does not meet the quote; `error` holds the x402 reason.',
    action: 'Correct what `message` names and sign a new payment. Nothing was charged.',
  },
  payment_already_used: {
    status: 402,
    retry: 'new_quote',
    message: 'This payment is spent. Sign a new one.',
    when: 'The payment was settled earlier and its answer is no longer kept.',
    action: 'Sign a new payment. If the answer never reached you, send the operator the transaction.',
  },
  payment_owed: {
    status: 402,
    retry: 'never',
    message:
      'This payment has arrived and its answer cannot be delivered. The amount is recorded as a debt to you. Do not send it again: contact the operator with the transaction.',
    when: 'The payment was transferred although its purchase had ended, or by others, so it bought nothing; the operator owes it to the payer.',
    action:
      'Do not repeat the payment. Send the operator the `transaction`: the amount is recorded as a debt to the payer. To get the answer now, pay for it again.',
  },
  sign_in_required: {
    status: 402,
    retry: 'after_fix',
    message:
      'Others can read a used payment from the chain, so it does not prove that the purchase is yours. Send the Idempotency-Key of the purchase, or sign in with the wallet that paid: sign the challenge of the extension sign-in-with-x and repeat the request with it in SIGN-IN-WITH-X. Do not pay again.',
    when: 'A used payment, or the look-up of one, came without a proof that the purchase is the caller’s.',
    action:
      'Send the Idempotency-Key (or payment-identifier) of the purchase, or sign the challenge of `sign-in-with-x` with the wallet that paid. Do not pay again.',
  },
  settlement_failed: {
    status: 402,
    retry: 'new_quote',
    message: 'The payment could not be settled; nothing was charged.',
    when: 'The answer was ready, but the chain or the facilitator refused the payment.',
    action: 'Check the balance and the validity window, then sign a new payment. Nothing was charged.',
  },
  token_invalid: {
    status: 402,
    retry: 'new_quote',
    message: 'The access token was not issued by this service or was revoked. Buy a plan, or pay per call.',
    when: 'The access token is malformed, foreign, altered or revoked, or its plan is no longer offered.',
    action: 'Buy a plan again, or pay for the call.',
  },
  token_expired: {
    status: 402,
    retry: 'new_quote',
    message: 'The access token has expired. Buy the plan again, or pay per call.',
    when: 'The access token is genuine, but its time window has ended.',
    action: 'Buy the plan again, or pay for the call.',
  },
  token_route: {
    status: 402,
    retry: 'new_quote',
    message: 'The plan of this token does not cover this route. Pay per call.',
    when: 'The access token is valid, but its plan does not authorize this route.',
    action: 'Pay for the call, or buy a plan whose authorized_routes name the route.',
  },
  identifier_required: {
    status: 400,
    retry: 'after_fix',
    message:
      'Name this purchase: send an Idempotency-Key, or an id in the extension payment-identifier. Nothing was charged.',
    when: 'The route requires a purchase identifier and the payment came without one.',
    action: 'Send the same payment again with an Idempotency-Key header or a payment-identifier.',
  },
  unauthorized: {
    status: 401,
    retry: 'after_fix',
    message: 'Send the operator token: Authorization: Bearer <token>.',
    when: 'An operator route was called without the operator token, or with a wrong one.',
    action: 'Send the operator token in the Authorization header.',
  },
  forbidden: {
    status: 403,
    retry: 'never',
    message: 'This answer is not available to this caller.',
    when: 'A product refuses this caller.',
    action: 'Do not send the request again: the answer stays the same.',
  },
  payer_refused: {
    status: 403,
    retry: 'never',
    message: 'The seller does not sell to this payer; nothing was charged.',
    when: 'A rule of the seller, such as a deny list, refuses the wallet that signed the payment.',
    action: 'Do not send the payment again. Nothing was charged. If this is a mistake, ask the operator.',
  },
  not_found: {
    status: 404,
    retry: 'never',
    message: 'No route has this address. /openapi.json lists every route.',
    when: 'No route has this address, or the record that was asked for does not exist.',
    action:
      'Check the address and its parameters against /openapi.json. Repeating the call does not help: a record that is missing today, such as a symbol, may be added later, and the free lists show it then.',
  },
  not_held: {
    status: 404,
    retry: 'after_fix',
    message: 'No data are held for what was asked; nothing was charged. Ask for the window in nearest.',
    when: 'Everything that was asked for lies outside the data that are held; `nearest` is the nearest window that holds something, or null.',
    action: 'Ask for the window in `nearest`; an unused payment stays valid.',
  },
  empty_not_sold: {
    status: 404,
    retry: 'after_fix',
    message: 'Nothing matches, and an empty answer is not sold here; nothing was charged.',
    when: 'The data were watched and nothing matches, and the route does not sell such an answer.',
    action: 'Ask for something else, or later. Nothing was charged.',
  },
  method_not_allowed: {
    status: 405,
    retry: 'after_fix',
    message: 'Use a method named in the Allow header.',
    when: 'The address exists, but not for this HTTP method.',
    action: 'Use one of the methods in the Allow header.',
  },
  payment_conflict: {
    status: 409,
    retry: 'new_quote',
    message: 'This payment was first used for another request. Sign a new one.',
    when: 'The payment is bound to another request: another route, or other input. Or its nonce belongs to another payment.',
    action:
      'Sign a new payment, with a new nonce, for this request. To get the answer of the first request, repeat that one.',
  },
  idempotency_conflict: {
    status: 409,
    retry: 'same_payment',
    message: 'This idempotency key belongs to another payment. Send that payment again, or use a new key.',
    when: 'The idempotency key and the payment belong to two different purchases. This one was not charged.',
    action: 'Send the payment and the key of one purchase together, or use a new key for a new purchase.',
  },
  retired: {
    status: 410,
    retry: 'never',
    message: 'This route is retired.',
    when: 'The route was taken out of service; `replacement` names its successor, if there is one.',
    action: 'Call the replacement.',
  },
  body_too_slow: {
    status: 408,
    retry: 'after_delay',
    message: 'The body arrives too slowly; nothing was charged. Send the request again.',
    when: 'The request body stopped arriving, arrives at less than 4 kB per second, or would take more than 15 minutes.',
    action: 'Send the same request again, over a faster connection. Nothing was charged.',
  },
  body_too_large: {
    status: 413,
    retry: 'after_fix',
    message: 'Send a smaller body.',
    when: 'The request body exceeds the size limit of the route.',
    action: 'Send a smaller body.',
  },
  media_unsupported: {
    status: 415,
    retry: 'after_fix',
    message: 'Send the body in a media type the route accepts.',
    when: 'The route does not accept the Content-Type of the body.',
    action: 'Send the body in a media type the route accepts.',
  },
  validation_failed: {
    status: 422,
    retry: 'after_fix',
    message: 'Correct the fields named in detail and send the request again.',
    when: 'A parameter, a header or the body fails validation; `detail` lists the fields.',
    action: 'Correct those fields and send the request again; an unused payment stays valid.',
  },
  rate_limited: {
    status: 429,
    retry: 'after_delay',
    message: 'Too many requests. Wait as long as Retry-After says.',
    when: 'The caller sent too many requests, wrong operator tokens, or payments or sign-ins that failed, left too many calls unpaid, holds too many open streams, or has made as many calls of the route as one buyer may.',
    action: 'Wait as many seconds as Retry-After says, then send the request again.',
  },
  internal: {
    status: 500,
    retry: 'after_delay',
    message: 'Something failed on our side; nothing was charged.',
    when: 'The gateway failed unexpectedly; `call_id` identifies the call in its log.',
    action: 'Send the request again later. If it keeps failing, send the operator the call_id.',
  },
  product_failed: {
    status: 502,
    retry: 'after_delay',
    message: 'The product could not answer; nothing was charged.',
    when: 'The product threw an error, or its upstream answered with one.',
    action: 'Send the request again later; an unused payment stays valid.',
  },
  product_suspended: {
    status: 503,
    retry: 'after_delay',
    message: 'This product is temporarily unavailable; nothing was charged.',
    when: 'The product or the plan is not available at the moment.',
    action: 'Wait as many seconds as Retry-After says, then send the request again.',
  },
  paused: {
    status: 503,
    retry: 'after_delay',
    message: 'The operator has paused this route; nothing was charged.',
    when: 'The operator has paused the route or its product.',
    action:
      'Send the request again later; an unused payment stays valid. Answers that you bought before are still given again.',
  },
  data_stale: {
    status: 503,
    retry: 'after_delay',
    message: 'The data are not fresh enough to be sold; nothing was charged.',
    when: 'The data behind the answer do not meet what the route promises; `missing` lists what is missing: newest, sources, coverage, or report if the product does not say.',
    action:
      'Wait as many seconds as Retry-After says, then send the request again; an unused payment stays valid. /health has the present state.',
  },
  screening_unavailable: {
    status: 503,
    retry: 'after_delay',
    message:
      'It cannot be checked at the moment whether this payer may buy, so no payment is taken; nothing was charged.',
    when: 'A rule of the seller decides who may buy, and cannot be asked at the moment.',
    action: 'Wait as many seconds as Retry-After says, then send the request again; an unused payment stays valid.',
  },
  settler_unavailable: {
    status: 503,
    retry: 'after_delay',
    message: 'Payments cannot be settled at the moment; nothing was charged.',
    when: 'No node or facilitator can settle payments on this network at the moment.',
    action: 'Send the same request again later, or pay on another network of accepts.',
  },
  ledger_unavailable: {
    status: 503,
    retry: 'same_payment',
    message:
      'The payment records cannot be read at the moment. Repeat this very request with the same payment; do not sign a new one.',
    when: 'The payment journal cannot be read or written, so the state of the payment is unknown.',
    action: 'Repeat the same request with the same payment. Do not sign a new one.',
  },
  payment_not_recorded: {
    status: 503,
    retry: 'same_payment',
    message:
      'Payments cannot be recorded at the moment, so none is taken. Nothing was charged. Send the same request with the same payment later.',
    when: 'The payment journal cannot be written: its disk is full, read-only or damaged. Nothing was sent to the chain.',
    action:
      'Wait as many seconds as Retry-After says, then send the same request with the same payment. Nothing was charged.',
  },
  settlement_pending: {
    status: 503,
    retry: 'same_payment',
    message: 'The payment was sent and is not confirmed yet. Repeat this very request.',
    when: 'The payment was sent and its outcome is not known yet.',
    action: 'Repeat the same request with the same payment after Retry-After. Do not sign a new one.',
  },
  product_timeout: {
    status: 504,
    retry: 'after_delay',
    message: 'The product took too long; nothing was charged.',
    when: 'The product did not answer within the time limit of the route.',
    action: 'Send the request again later, or ask for less; an unused payment stays valid.',
  },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERRORS

export interface ErrorOptions {
  /** The x402 reason behind a refused payment, e.g. `insufficient_funds`. */
  readonly reason?: string
  readonly headers?: Readonly<Record<string, string>>
  /** More top-level fields of the JSON error body. */
  readonly fields?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

/** The one error class the gateway answers with. Anything else that is thrown is a bug and is answered as `internal`. */
export class ServiceError extends Error {
  readonly code: ErrorCode
  readonly reason: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly fields: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message?: string, options: ErrorOptions = {}) {
    super(message ?? ERRORS[code].message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = code
    this.reason = options.reason
    this.headers = options.headers ?? {}
    this.fields = options.fields ?? {}
  }

  get status(): number {
    return ERRORS[this.code].status
  }

  get retry(): Retry {
    return ERRORS[this.code].retry
  }
}

/** One item of the 422 body (interface 2.3). `loc` starts with `query`, `path`, `body`, `header` or `arguments`. */
export interface ValidationItem {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
  readonly input?: unknown
  readonly ctx?: Readonly<Record<string, unknown>>
}

/** 422 with the items in `detail`; nothing is charged. A handler may throw it for rules that a schema cannot express. */
export class InvalidInput extends ServiceError {
  readonly detail: readonly ValidationItem[]

  constructor(detail: readonly ValidationItem[] | string, loc: readonly (string | number)[] = ['body']) {
    const items = typeof detail === 'string' ? [{ loc, msg: detail, type: 'value_error' }] : detail
    super('validation_failed', items.map((item) => `${item.loc.join('.')}: ${item.msg}`).join('; '))
    this.detail = items
  }
}

/** A window of time. `end` is excluded. */
export interface Window {
  readonly start: Date
  readonly end: Date
}

/** 404; nothing is charged. `nearest` is the nearest window that holds something, or null if none is known. */
export class NotHeld extends ServiceError {
  constructor(message: string, nearest: Window | null) {
    const window = nearest && { start: nearest.start.toISOString(), end: nearest.end.toISOString() }
    super('not_held', message, { fields: { nearest: window } })
  }
}

/** 404; nothing is charged. */
export class NotFound extends ServiceError {
  constructor(message?: string) {
    super('not_found', message)
  }
}

/** 503 with Retry-After; nothing is charged. `progress`, from 0 to 1, says how much of the data is there already. */
export class Unavailable extends ServiceError {
  constructor(message?: string, retryAfterSeconds = 60, progress?: number) {
    super('product_suspended', message, {
      headers: { 'retry-after': String(retryAfterSeconds) },
      ...(progress === undefined ? {} : { fields: { progress } }),
    })
  }
}

/** 429 with Retry-After; nothing is charged. `limit` says which limit was exceeded, as a sentence. */
export class RateLimited extends ServiceError {
  constructor(limit: string, retryAfterSeconds: number) {
    const wait = Math.max(1, Math.ceil(retryAfterSeconds))
    super('rate_limited', `${limit} Wait ${wait} s.`, { headers: { 'retry-after': String(wait) } })
  }
}

/** The JSON body of an error. Every body has `code`, `message` and `retry`; a 422 adds `detail`. */
export function errorBody(error: ServiceError): Record<string, unknown> {
  return {
    ...(error instanceof InvalidInput ? { detail: error.detail } : {}),
    error: error.reason ?? error.code,
    code: error.code,
    message: error.message,
    retry: error.retry,
    ...error.fields,
  }
}
