/** Decides the bucket of a transfer or a payment from the journal's record and the chain's log. Pure functions. */
import type { PaymentRecord } from '../../payments/journal/journal.ts'
import type { Hex } from '../../config/networks.ts'
import { isSettledByOthers } from '../../payments/debts.ts'

/**
 * matched: the journal and the chain agree. pending: not final yet. missing: settled in the journal, not on the chain.
 * amount_differs: the journal has another amount. unknown: a transfer that no settled payment explains. unreadable: the
 * node did not return what is needed.
 */
export const BUCKETS = ['matched', 'pending', 'missing', 'amount_differs', 'unknown', 'unreadable'] as const

export type Bucket = (typeof BUCKETS)[number]

/** Buckets that need a person's attention. */
export const ALARMING: readonly Bucket[] = ['missing', 'amount_differs', 'unknown', 'unreadable']

/** A transfer of USDC to `payTo`. */
export interface Transfer {
  readonly transaction: Hex
  readonly logIndex: number
  readonly block: number
  readonly from: Hex
  /** Atomic units, or null if the log cannot be read. */
  readonly amount: bigint | null
  /** Nonce of the authorization it used; null for a plain transfer, undefined if the receipt cannot be read. */
  readonly nonce: Hex | null | undefined
  /** The account that sent the transaction; null if the receipt does not say. */
  readonly sender: Hex | null
}

export interface Verdict {
  readonly bucket: Bucket
  readonly note: string
}

/** Returns the bucket of a transfer. `payment` is the journal's record with the same payer and nonce, if any. */
export function bucketOfTransfer(
  { amount, nonce, transaction, sender }: Transfer,
  payment: Pick<PaymentRecord, 'state' | 'amount' | 'transaction'> | null,
): Verdict {
  if (amount === null || nonce === undefined) return { bucket: 'unreadable', note: 'the log cannot be read' }
  if (nonce === null) return { bucket: 'unknown', note: 'a transfer without an authorization' }
  if (!payment) return { bucket: 'unknown', note: `an authorization that is not in the journal, sent by ${sender}` }
  const { state } = payment
  if (state === 'submitted') return { bucket: 'pending', note: 'the journal has it as submitted' }
  if (state !== 'settled' && state !== 'owed') return { bucket: 'unknown', note: `the journal says ${state}` }
  if (payment.amount !== amount) return { bucket: 'amount_differs', note: `the journal says ${payment.amount}` }
  const isSame = payment.transaction?.toLowerCase() === transaction.toLowerCase()
  return { bucket: 'matched', note: isSame ? '' : `the journal names transaction ${payment.transaction}` }
}

/**
 * Whether a transfer used an authorization and was sent by others than the processes that share this journal: by another
 * gateway with a journal of its own, or by a stranger. Facilitators send with unknown accounts, so a payment
 * that the journal gave to one counts as ours.
 * @param ours accounts that are known to send our transactions, in lower case
 */
export function isSentByOthers(
  { nonce, transaction, sender }: Transfer,
  payment: Pick<PaymentRecord, 'intent' | 'cause'> | null,
  ours: ReadonlySet<string>,
): boolean {
  if (!nonce || sender === null) return false
  if (!payment || payment.intent === null || isSettledByOthers(payment)) return true
  if (payment.intent.kind !== 'chain' || ours.has(sender.toLowerCase())) return false
  return payment.intent.transaction?.toLowerCase() !== transaction.toLowerCase()
}

/** How far the chain was read; times in milliseconds since the epoch. */
export interface ReadUpTo {
  readonly now: number
  /** Time of the last block read. */
  readonly chain: number
  /** How long a settled payment may be ahead of the blocks read. */
  readonly graceMs: number
}

/** Returns the bucket of a payment that the journal has as settled and that has no transfer. */
export function bucketOfSettled(settledAt: number, { now, chain, graceMs }: ReadUpTo): Verdict {
  const isRead = now - settledAt > graceMs && chain >= settledAt - graceMs
  if (!isRead) return { bucket: 'pending', note: 'the chain is not read that far yet' }
  return { bucket: 'missing', note: 'settled in the journal, no transfer on the chain' }
}
