/**
 * Which statements the signer signs: access tokens and receipts of this service, in exactly the shape that the gateway
 * issues, and attestations of products that expire.
 */
import type { Hex } from '../config/networks.ts'
import { RECEIPT_TYPE } from '../documents/receipts/signed-receipts.ts'
import { TOKEN_TYPE } from '../tokens/access-tokens.ts'
import type { Statement } from '../tokens/statement-signer.ts'

export interface StatementRules {
  /** BASE_URL: issuer and audience of tokens. */
  readonly issuer: string
  /** Who is paid on which network (CAIP-2). `payTo` is null in the sandbox, which makes a recipient of its own. */
  readonly recipients: readonly { readonly caip2: string; readonly asset: Hex; readonly payTo: Hex | null }[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

type Check = (value: unknown) => boolean

const MAX_TEXT = 8_192
/** How far ahead the clock of another machine may be. */
const CLOCK_SECONDS = 60

const isText: Check = (value) => typeof value === 'string' && value.length <= MAX_TEXT
const isSeconds: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const matches =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === 'string' && pattern.test(value)
const isDigest = matches(/^sha256:[0-9a-f]{64}$/)

const TOKEN: Readonly<Record<string, Check>> = {
  iss: isText,
  aud: isText,
  sub: isText,
  jti: isText,
  plan: isText,
  tier: isText,
  iat: isSeconds,
  exp: isSeconds,
}

const RECEIPT: Readonly<Record<string, Check>> = {
  version: (value) => value === 1,
  network: isText,
  resourceUrl: isText,
  payer: isText,
  issuedAt: isSeconds,
  transaction: isText,
  scheme: (value) => value === 'exact',
  asset: isText,
  payTo: isText,
  amount: matches(/^\d{1,78}$/),
  nonce: isText,
  requestDigest: isDigest,
}
const OPTIONAL: Readonly<Record<string, Check>> = { responseDigest: isDigest }

/** Returns why a statement is not signed, or null if it is. */
export function refusalOfStatement(type: string, statement: Statement, rules: StatementRules): string | null {
  if (type === TOKEN_TYPE) return refusalOfToken(statement, rules)
  if (type === RECEIPT_TYPE) return refusalOfReceipt(statement, rules)
  return 'it is neither an access token nor a receipt'
}

function refusalOfToken(statement: Statement, { issuer, now }: StatementRules): string | null {
  if (!hasShape(statement, TOKEN)) return 'it does not have the claims of an access token'
  const { iss, aud, iat, exp } = statement as { iss: string; aud: string; iat: number; exp: number }
  if (iss !== issuer || aud !== issuer) return 'the token is for another service'
  return iat <= now() / 1000 + CLOCK_SECONDS && exp > iat ? null : 'the time of the token is not valid'
}

function refusalOfReceipt(statement: Statement, { recipients }: StatementRules): string | null {
  if (!hasShape(statement, RECEIPT, OPTIONAL)) return 'it does not have the fields of a receipt'
  const { network, asset, payTo } = statement as { network: string; asset: string; payTo: string }
  const isOurs = recipients.some(
    (own) =>
      own.caip2 === network &&
      own.asset.toLowerCase() === asset.toLowerCase() &&
      (own.payTo === null || own.payTo.toLowerCase() === payTo.toLowerCase()),
  )
  return isOurs ? null : 'the receipt is of a payment to somebody else'
}

const MAX_ATTESTATION = 65_536
/** The longest that an attestation may be valid. */
const MAX_HOURS = 24

/**
 * Returns why an attestation is not signed, or null if it is. It must be a JSON object with `issued_at` and
 * `expires_at` (ISO 8601), at most a day apart.
 */
export function refusalOfAttestation(text: string): string | null {
  if (typeof text !== 'string' || text.length > MAX_ATTESTATION) return 'the statement of a product is too long'
  const { issued_at: issued, expires_at: expires } = objectIn(text)
  if (typeof issued !== 'string' || typeof expires !== 'string') return 'the statement of a product does not expire'
  const hours = (Date.parse(expires) - Date.parse(issued)) / 3_600_000
  return hours > 0 && hours <= MAX_HOURS ? null : 'the statement of a product does not expire within a day'
}

function objectIn(text: string): Statement {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Statement) : {}
  } catch {
    return {}
  }
}

/** Whether a statement has all of these fields, and no others but the optional ones. */
function hasShape(
  statement: Statement,
  required: Readonly<Record<string, Check>>,
  optional: Readonly<Record<string, Check>> = {},
): boolean {
  if (typeof statement !== 'object' || statement === null) return false
  return (
    Object.entries(required).every(([name, check]) => Object.hasOwn(statement, name) && check(statement[name])) &&
    Object.entries(statement).every(
      ([name, value]) =>
        Object.hasOwn(required, name) || (Object.hasOwn(optional, name) && optional[name]?.(value) === true),
    )
  )
}
