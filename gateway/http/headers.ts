/** Headers every answer carries, and what browsers elsewhere may send and read. */

const EXPOSED = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'X-Call-Id',
  'Retry-After',
  'ETag',
  'Allow',
  'Link',
  'Idempotent-Replay',
  'Mcp-Session-Id',
  'Mcp-Protocol-Version',
]

/** Clients of x402 send Access-Control-Expose-Headers as a request header, so that name must be allowed too. */
const ALLOWED = [
  'Content-Type',
  'Accept',
  'Authorization',
  'X-PAYMENT',
  'PAYMENT-SIGNATURE',
  'X-SERVICE-TOKEN',
  'SIGN-IN-WITH-X',
  'Idempotency-Key',
  'Access-Control-Expose-Headers',
  'Mcp-Session-Id',
  'Mcp-Protocol-Version',
  'Last-Event-ID',
]

const PAGE_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self'",
  "script-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

export type Headers = Readonly<Record<string, string>>

export interface HeaderSets {
  /** JSON and other machine answers. */
  readonly data: Headers
  /** HTML: may load our own assets and nothing else. */
  readonly page: Headers
}

/** The fixed headers. Prices and answers are public to read from any web page: there are no cookies to steal. */
export function createHeaders(baseUrl: string): HeaderSets {
  const always = {
    'access-control-allow-origin': '*',
    'access-control-expose-headers': EXPOSED.join(', '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'cross-origin',
    ...(baseUrl.startsWith('https:') ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  }
  return {
    data: { ...always, 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" },
    page: { ...always, 'content-security-policy': PAGE_POLICY, 'cross-origin-opener-policy': 'same-origin' },
  }
}

/** Headers of the answer to OPTIONS, for the methods of one path. */
export function optionsHeaders(methods: readonly string[]): Headers {
  const list = methods.join(', ')
  return {
    allow: list,
    'access-control-allow-methods': list,
    'access-control-allow-headers': ALLOWED.join(', '),
    'access-control-max-age': '86400',
  }
}
