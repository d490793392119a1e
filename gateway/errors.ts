/**
 * Every way a call can be refused, in one table. `code` is a closed union, so a `switch` over it is exhaustive.
 * `retry` tells an agent what to do next.
 */
export type Retry = 'never' | 'after_fix' | 'after_delay' | 'new_quote' | 'same_payment'

export interface ErrorKind {
  readonly status: number
  readonly retry: Retry
  /** What the caller can do, said when nothing more exact is known. */
  readonly advice: string
}

const kind = (status: number, retry: Retry, advice: string): ErrorKind => ({ status, retry, advice })

export const ERRORS = {
  payment_required: kind(402, 'new_quote', 'Sign one of the payments in accepts and send the same request again.'),
  payment_invalid: kind(402, 'new_quote', 'The payment was not accepted; nothing was charged. Sign a fresh one.'),
  payment_already_used: kind(402, 'new_quote', 'This payment is spent. Sign a new one.'),
  settlement_failed: kind(402, 'new_quote', 'The payment could not be settled; nothing was charged.'),
  token_invalid: kind(
    402,
    'new_quote',
    'The access token is not one of ours or is revoked. Buy a plan, or pay per call.',
  ),
  token_expired: kind(402, 'new_quote', 'The access token has ended. Buy the plan again, or pay per call.'),
  token_route: kind(402, 'new_quote', 'The plan of this token does not cover this route. Pay per call.'),
  identifier_required: kind(
    400,
    'after_fix',
    'Name this purchase: send an Idempotency-Key, or an id in the extension payment-identifier. Nothing was charged.',
  ),
  unauthorized: kind(401, 'after_fix', 'Send the operator token: Authorization: Bearer <token>.'),
  forbidden: kind(403, 'never', 'This is not for you to have.'),
  not_found: kind(404, 'never', 'There is nothing at this address. /openapi.json lists every route.'),
  method_not_allowed: kind(405, 'after_fix', 'Use a method named in the Allow header.'),
  payment_conflict: kind(409, 'new_quote', 'This payment was first used for another request. Sign a new one.'),
  idempotency_conflict: kind(
    409,
    'same_payment',
    'This idempotency key belongs to another payment. Send that payment again, or use a new key.',
  ),
  retired: kind(410, 'never', 'This route is retired.'),
  body_too_large: kind(413, 'after_fix', 'Send a smaller body.'),
  media_unsupported: kind(415, 'after_fix', 'Send the body in a media type the route accepts.'),
  validation_failed: kind(422, 'after_fix', 'Correct the fields named in detail and send the request again.'),
  rate_limited: kind(429, 'after_delay', 'Too many requests. Wait as long as Retry-After says.'),
  internal: kind(500, 'after_delay', 'Something failed on our side; nothing was charged.'),
  product_failed: kind(502, 'after_delay', 'The product could not answer; nothing was charged.'),
  product_suspended: kind(503, 'after_delay', 'This product is suspended for the moment; nothing was charged.'),
  settler_unavailable: kind(503, 'after_delay', 'Payments cannot be settled at the moment; nothing was charged.'),
  ledger_unavailable: kind(
    503,
    'same_payment',
    'The ledger cannot be read at the moment. Repeat this very request with the same payment; do not sign a new one.',
  ),
  settlement_pending: kind(
    503,
    'same_payment',
    'The payment was sent and is not confirmed yet. Repeat this very request.',
  ),
  product_timeout: kind(504, 'after_delay', 'The product took too long; nothing was charged.'),
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

/** The one error class the gateway answers with. Anything else thrown is a bug and is answered as `internal`. */
export class ServiceError extends Error {
  readonly code: ErrorCode
  readonly reason: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly fields: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message?: string, options: ErrorOptions = {}) {
    super(message ?? ERRORS[code].advice, options.cause === undefined ? undefined : { cause: options.cause })
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

/** 422 in the interface's shape; nothing is charged. A handler may throw it for what a schema cannot say. */
export class InvalidInput extends ServiceError {
  readonly detail: readonly ValidationItem[]

  constructor(detail: readonly ValidationItem[] | string, loc: readonly (string | number)[] = ['body']) {
    const items = typeof detail === 'string' ? [{ loc, msg: detail, type: 'value_error' }] : detail
    super('validation_failed', items.map((item) => `${item.loc.join('.')}: ${item.msg}`).join('; '))
    this.detail = items
  }
}

/** 404; nothing is charged. */
export class NotFound extends ServiceError {
  constructor(message?: string) {
    super('not_found', message)
  }
}

/** 503 with Retry-After; nothing is charged. */
export class Unavailable extends ServiceError {
  constructor(message?: string, retryAfterSeconds = 60) {
    super('product_suspended', message, { headers: { 'retry-after': String(retryAfterSeconds) } })
  }
}

/** The JSON body of an error. A 422 carries `detail`; the stable `code` and the `retry` policy are on every one. */
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
