/**
 * Payments that a transaction settled which this gateway did not send. The money has arrived, so by default it buys the
 * answer. In strict mode (SETTLEMENT) it does not, because the same transaction may have bought an answer at another
 * gateway with a journal of its own: then it is a debt to the payer.
 */
import type { Hex } from '../config/networks.ts'
import type { Journal, PaymentRecord } from './journal/journal.ts'

const NOTE = 'settled by a transaction that this gateway did not send'
/** Begins the reason of a settled payment that is about to be owed. Its answer was dropped, or never stored. */
const OWED = 'owed: '

/**
 * The reason in the journal of a payment that `sender` settled.
 * @example foreignNote('0xab') → "settled by a transaction that this gateway did not send, but 0xab"
 */
export function foreignNote(sender: Hex): string {
  return `${NOTE}, but ${sender}`
}

/** Whether others settled a payment, according to the journal. It may be owed because of that, or not. */
export function isSettledByOthers({ reason }: Pick<PaymentRecord, 'reason'>): boolean {
  return (reason?.startsWith(OWED + NOTE) || reason?.startsWith(NOTE)) ?? false
}

/** Whether a settled payment is to be owed: the process that settled it stopped before it could say so. */
export function isToBeOwed({ state, reason }: Pick<PaymentRecord, 'state' | 'reason'>): boolean {
  return state === 'settled' && (reason?.startsWith(OWED) ?? false)
}

/**
 * Turns a submitted or reversed payment that others settled into a debt. The first of two writes drops the answer, so
 * that nothing can be delivered between them; if the process stops there, recovery makes the second. Returns false if
 * another process has moved the payment.
 */
export async function oweForeignSettlement(
  journal: Pick<Journal, 'settledByOthers' | 'owed'>,
  { key, attempt }: Pick<PaymentRecord, 'key' | 'attempt'>,
  transaction: Hex,
  sender: Hex | undefined,
): Promise<boolean> {
  const reason = OWED + (sender === undefined ? NOTE : foreignNote(sender))
  if (!(await journal.settledByOthers(key, attempt, transaction, reason))) return false
  return journal.owed(key, attempt, reason)
}

/**
 * Turns a settled payment into a debt, because a reorganisation took our transaction back and others have moved the money
 * since. Its sale is in the ledger already. Returns false if another process has moved the payment.
 */
export function oweReplacedSettlement(
  journal: Pick<Journal, 'owed'>,
  { key, attempt }: Pick<PaymentRecord, 'key' | 'attempt'>,
  sender: Hex | undefined,
): Promise<boolean> {
  return journal.owed(key, attempt, OWED + (sender === undefined ? NOTE : foreignNote(sender)))
}

/** What the buyer of such a debt learns. */
export const OWED_ELSEWHERE =
  'Another transaction than ours settled this payment, so it may have bought its answer elsewhere. Nothing is delivered ' +
  'here, and the amount is recorded as a debt to you. Do not send it again: contact the operator with the transaction.'
