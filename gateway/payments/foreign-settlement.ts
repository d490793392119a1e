/**
 * Payments that a transaction settled which this gateway did not send. The money has arrived, so by default it buys the
 * answer. In strict mode (SETTLEMENT) it does not, because the same transaction may have bought an answer at another
 * gateway with a journal of its own: then it is a debt to the payer.
 */
import type { Hex } from '../config/networks.ts'
import type { Journal, PaymentRecord } from './journal/journal.ts'

const NOTE = 'settled by a transaction that this gateway did not send'

/**
 * What the journal says about such a payment.
 * @example foreignNote('0xab') → "settled by a transaction that this gateway did not send, but 0xab"
 */
export function foreignNote(sender: Hex): string {
  return `${NOTE}, but ${sender}`
}

/** Whether the journal says so of a payment. */
export function isSettledByOthers({ reason }: Pick<PaymentRecord, 'reason'>): boolean {
  return reason?.startsWith(NOTE) ?? false
}

/** Turns such a payment into a debt. */
export function oweForeignSettlement(
  journal: Pick<Journal, 'owed'>,
  { key, attempt }: Pick<PaymentRecord, 'key' | 'attempt'>,
  sender: Hex | undefined,
): Promise<boolean> {
  return journal.owed(key, attempt, sender === undefined ? NOTE : foreignNote(sender))
}

/** What the buyer of such a debt learns. */
export const OWED_ELSEWHERE =
  'Another transaction than ours settled this payment, so it may have bought its answer elsewhere. Nothing is delivered ' +
  'here, and the amount is recorded as a debt to you. Contact the operator.'
