/**
 * Signed receipts (x402 extension offer-receipt, JWS form): what was paid, for which request, and which bytes were the
 * answer. Made from the ledger alone, so a retry gets the very same receipt. Anybody verifies one with the published
 * key set; the `kid` names the key there.
 */
import { createHash } from 'node:crypto'
import type { Answer } from '../../calls/call.ts'
import type { Serve } from '../../calls/serve.ts'
import type { Journal, PaymentRecord } from '../../payments/journal/journal.ts'
import type { Payments } from '../../payments/payments.ts'
import type { Logger } from '../../plugin/plugin.ts'
import type { Tokens } from '../../tokens/access-tokens.ts'

/** `typ` of the JWS: a receipt can never be taken for an access token, nor a token for a receipt. */
export const RECEIPT_TYPE = 'x402-receipt'

/** The signed statement. Fields beyond the extension's own bind amount, authorization, request and response. */
export interface ReceiptStatement {
  readonly version: 1
  /** CAIP-2. */
  readonly network: string
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
  /** "sha256:" and the digest of operation and input, as the ledger binds them. */
  readonly requestDigest: string
  /** "sha256:" and the digest of the answer's bytes; absent where they are not kept. */
  readonly responseDigest?: string
}

export interface SigningParts {
  readonly tokens: Pick<Tokens, 'sign'>
  readonly journal: Pick<Journal, 'find'>
  readonly payments: Pick<Payments, 'present'>
  readonly log: Logger
}

/** `serve`, with a signed receipt beside every settled payment. A receipt that cannot be signed holds no answer back. */
export function withReceipts({ tokens, journal, payments, log }: SigningParts, serve: Serve): Serve {
  return async (edition, bound, request) => {
    const answer = await serve(edition, bound, request)
    const { receipt } = answer
    if (!receipt?.success) return answer
    try {
      const presented = payments.present(request, '')
      const record = presented && (await journal.find(presented.payment.key))
      // Submitted: the answer leaves before the settlement is final, and its transaction is known.
      if (!record || !['settled', 'submitted'].includes(record.state)) return answer
      const booked = { ...record, transaction: record.state === 'settled' ? record.transaction : receipt.transaction }
      const signed = tokens.sign(RECEIPT_TYPE, { ...statementOf(booked as PaymentRecord, request.url, answer) })
      return { ...answer, receipt: { ...receipt, signed } }
    } catch (error) {
      log.error({ call: request.id, err: error }, 'a receipt was not signed')
      return answer
    }
  }
}

function statementOf(record: PaymentRecord, resourceUrl: string, { body, stream }: Answer): ReceiptStatement {
  const { network, payer, settledAt, updatedAt, transaction, asset, payTo, amount, identity, fingerprint, answer } =
    record
  const bytes = answer?.body ?? body
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
    ...(stream ? {} : { responseDigest: digestOf(bytes) }),
  }
}

/** "sha256:" and the hex digest of these bytes. */
export function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
