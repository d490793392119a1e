/** In which bucket a transfer or a payment belongs. Pure: the ledger's row and the chain's log decide. */
import type { PaymentRecord } from '../../payments/journal/journal.ts'
import type { Hex } from '../../config/networks.ts'

/**
 * matched: paid and booked alike. pending: on its way. missing: booked as settled, not on the chain. amount_differs:
 * booked with another amount. unknown: money came that no settled payment explains. unreadable: the chain did not say.
 */
export const BUCKETS = ['matched', 'pending', 'missing', 'amount_differs', 'unknown', 'unreadable'] as const

export type Bucket = (typeof BUCKETS)[number]

/** Buckets somebody must look at. */
export const ALARMING: readonly Bucket[] = ['missing', 'amount_differs', 'unknown', 'unreadable']

/** USDC that moved to the payee. */
export interface Transfer {
  readonly transaction: Hex
  readonly logIndex: number
  readonly block: number
  readonly from: Hex
  /** Atomic units; null where the log cannot be read. */
  readonly amount: bigint | null
  /** Nonce of the authorization it used; null where it was no authorization, undefined where that cannot be read. */
  readonly nonce: Hex | null | undefined
}

export interface Verdict {
  readonly bucket: Bucket
  readonly note: string
}

/** The bucket of a transfer, given the ledger's payment with its payer and nonce. */
export function bucketOfTransfer(
  { amount, nonce, transaction }: Transfer,
  payment: Pick<PaymentRecord, 'state' | 'amount' | 'transaction'> | null,
): Verdict {
  if (amount === null || nonce === undefined) return { bucket: 'unreadable', note: 'the log cannot be read' }
  if (nonce === null) return { bucket: 'unknown', note: 'a transfer without an authorization' }
  if (!payment) return { bucket: 'unknown', note: 'an authorization that is not in the ledger' }
  const { state } = payment
  if (state === 'submitted') return { bucket: 'pending', note: 'the ledger has not booked it yet' }
  if (state !== 'settled' && state !== 'owed') return { bucket: 'unknown', note: `the ledger says ${state}` }
  if (payment.amount !== amount) return { bucket: 'amount_differs', note: `the ledger says ${payment.amount}` }
  const isSame = payment.transaction?.toLowerCase() === transaction.toLowerCase()
  return { bucket: 'matched', note: isSame ? '' : `the ledger names transaction ${payment.transaction}` }
}

/** Moments in milliseconds since the epoch. */
export interface ReadUpTo {
  readonly now: number
  /** Time of the last block that was read. */
  readonly chain: number
  /** How long a booked payment may be ahead of the chain's reading. */
  readonly graceMs: number
}

/** The bucket of a payment booked as settled of which no transfer was read. */
export function bucketOfSettled(settledAt: number, { now, chain, graceMs }: ReadUpTo): Verdict {
  const isRead = now - settledAt > graceMs && chain >= settledAt - graceMs
  if (!isRead) return { bucket: 'pending', note: 'the chain is not read that far yet' }
  return { bucket: 'missing', note: 'booked as settled, no transfer on the chain' }
}
