/** Security and CORS headers of every answer. */

const EXPOSED = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'X-Call-Id',
  'Retry-After',
  'ETag',
  'X-Catalog-Version',
  'Content-Disposition',
  'X-Answer-Fields',
  'Allow',
  'Link',
  'Idempotent-Replay',
  'Trial-Calls-Left',
  'Trial-Renews-At',
  'Mcp-Session-Id',
  'Mcp-Protocol-Version',
]

/** x402 clients send Access-Control-Expose-Headers as a request header, so CORS must allow it too. */
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
  'If-None-Match',
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
  /** For JSON and other data. */
  readonly data: Headers
  /** For HTML, which may load only our own assets. */
  readonly page: Headers
}

/** Returns the fixed headers. Any web page may read the answers: no cookie grants access to them. */
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

/** Returns the headers of the answer to OPTIONS for a path with these methods. */
export function optionsHeaders(methods: readonly string[]): Headers {
  const list = methods.join(', ')
  return {
    allow: list,
    'access-control-allow-methods': list,
    'access-control-allow-headers': ALLOWED.join(', '),
    'access-control-max-age': '86400',
  }
}
