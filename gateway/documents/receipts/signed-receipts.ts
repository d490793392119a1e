/**
 * Signed receipts (x402 extension offer-receipt, JWS form): what was paid, for which request, and which bytes were the
 * answer. A receipt is made from the journal alone, so a retry gets the same one. Anyone can verify it with the
 * published key set, in which `kid` names the key.
 */
import { andThen, type Awaitable, isPromise } from '../../awaitable.ts'
import type { Answer, CallRequest } from '../../calls/request-and-answer.ts'
import type { Serve } from '../../calls/serve.ts'
import type { PaymentRecord } from '../../payments/journal/journal.ts'
import type { Logger } from '../../plugin/plugin.ts'
import type { Tokens } from '../../tokens/access-tokens.ts'

/** `typ` of the JWS, so that a receipt is never accepted as an access token or an offer. */
export const RECEIPT_TYPE = 'x402-receipt'

/** The signed statement. Beyond the fields of the extension it binds amount, authorization, request and response. */
export interface ReceiptStatement {
  readonly version: 1
  /** CAIP-2. */
  readonly network: string
  /** The address that was called; without its query if it is long. `requestDigest` covers the query in any case. */
  readonly resourceUrl: string
  readonly payer: string
  /** Seconds since the epoch. */
  readonly issuedAt: number
  readonly transaction: string
  readonly scheme: 'exact'
  readonly asset: string
  readonly payTo: string
  /** Atomic units. */
  readonly amount: string
  readonly nonce: string
  /** "sha256:" and the fingerprint of operation and input. */
  readonly requestDigest: string
  /** "sha256:" and the digest of the answer's bytes; absent for a stream, which is not stored. */
  readonly responseDigest?: string
}

export interface SigningParts {
  readonly tokens: Pick<Tokens, 'sign'>
  readonly log: Logger
}

/**
 * The longest address in a receipt. Many proxies hold 4,096 bytes for all headers of an answer together and refuse the
 * whole answer if they are longer, and this one is paid. An address of this length makes a header of about 3,100.
 */
const MAX_URL_CHARACTERS = 600

/** The address to state, or null if even its path is too long. */
function resourceOf(url: string): string | null {
  if (url.length <= MAX_URL_CHARACTERS) return url
  const [path = ''] = url.split('?', 1)
  return path.length <= MAX_URL_CHARACTERS ? path : null
}

/**
 * Adds a signed receipt to every paid answer of `serve`. An answer whose receipt cannot be signed, or would be too long, is
 * sent without.
 */
export function withReceipts(parts: SigningParts, serve: Serve): Serve {
  return (edition, bound, request) =>
    andThen(serve(edition, bound, request), (answer) => withReceipt(parts, request, answer))
}

function withReceipt({ tokens, log }: SigningParts, { id, url }: CallRequest, answer: Answer): Awaitable<Answer> {
  const { receipt, record } = answer
  if (!receipt?.success || !record) return answer
  const resource = resourceOf(url)
  if (resource === null) return answer
  const add = (signed: string): Answer => ({ ...answer, receipt: { ...receipt, signed } })
  const goWithout = (error: unknown): Answer => {
    log.error({ call: id, err: error }, 'a receipt could not be signed')
    return answer
  }
  try {
    const signed = tokens.sign(RECEIPT_TYPE, { ...statementOf(record, resource, answer) })
    return isPromise(signed) ? signed.then(add, goWithout) : add(signed)
  } catch (error) {
    return goWithout(error)
  }
}

function statementOf(record: PaymentRecord, resourceUrl: string, { body, stream, events }: Answer): ReceiptStatement {
  const { network, payer, settledAt, updatedAt, transaction, asset, payTo, amount, identity, fingerprint, answer } =
    record
  const { digest } = answer?.body ?? body
  return {
    version: 1,
    network,
    resourceUrl,
    payer,
    issuedAt: Math.floor((settledAt ?? updatedAt) / 1000),
    transaction: transaction ?? '',
    scheme: 'exact',
    asset,
    payTo,
    amount: String(amount),
    nonce: identity,
    requestDigest: `sha256:${fingerprint}`,
    ...(stream || events ? {} : { responseDigest: `sha256:${digest.toString('hex')}` }),
  }
}
