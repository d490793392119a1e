/**
 * Debts to buyers: payments whose money has arrived and that bought nothing here.
 *
 * - A transaction settled the payment which this gateway did not send. By default it buys the answer all the same. In strict
 *   mode (SETTLEMENT) it does not, because the same transaction may have bought an answer at another gateway with a journal
 *   of its own.
 * - It settled after it was released. When our transaction fails, the buyer learns that nothing was charged. But anybody who
 *   saw the signed payment can still send it until it expires.
 */
import type { Hex } from '../config/networks.ts'
import { ServiceError } from '../errors.ts'
import type { PaymentKey, Settler } from '../methods/payment-method.ts'
import type { Journal, PaymentRecord } from './journal/journal.ts'
import type { CauseOf } from './journal/payment-states.ts'

/**
 * The note, for people, on a payment that `sender` settled.
 * @example foreignNote('0xab') → "settled by a transaction that this gateway did not send, but 0xab"
 */
export function foreignNote(sender: Hex | undefined): string {
  return `settled by a transaction that this gateway did not send${sender === undefined ? '' : `, but ${sender}`}`
}

/** Whether others settled a payment, according to the journal. It may be owed because of that, or not. */
export function isSettledByOthers({ cause }: Pick<PaymentRecord, 'cause'>): boolean {
  return cause === 'foreign' || cause === 'foreign_owed'
}

/**
 * The cause of a settled payment that is to be owed: the process that settled it stopped before it could say so. Null if it
 * has bought its answer.
 */
export function causeToBeOwed({ state, cause }: Pick<PaymentRecord, 'state' | 'cause'>): CauseOf<'owed'> | null {
  return state === 'settled' && (cause === 'foreign_owed' || cause === 'late') ? cause : null
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
  const reason = `owed: ${foreignNote(sender)}`
  if (!(await journal.settledByOthers(key, attempt, transaction, reason))) return false
  return journal.owed(key, attempt, reason, 'foreign_owed')
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
  return journal.owed(key, attempt, `owed: ${foreignNote(sender)}`, 'foreign_owed')
}

/** The message to the buyer whose payment others settled. */
export const OWED_ELSEWHERE =
  'Another transaction than ours settled this payment, so it may have bought its answer elsewhere. Nothing is delivered ' +
  'here, and the amount is recorded as a debt to you. Do not send it again: contact the operator with the transaction.'

/** The note, for people, on a payment that settled late. */
const LATE = 'owed: settled after it was released'

/** Whether a released payment may still settle: it was sent, so others may have seen it. */
export function mayStillSettle(record: PaymentRecord | null): record is PaymentRecord {
  return record?.state === 'released' && record.intent !== null
}

/**
 * Records a late settlement as a debt. Returns false if the payment is in use again or already recorded. If the process
 * stops between the two steps, recovery does the second.
 */
export async function recordLateSettlement(
  journal: Pick<Journal, 'settledLate' | 'owed'>,
  { key, attempt }: Pick<PaymentRecord, 'key' | 'attempt'>,
  transaction: Hex,
): Promise<boolean> {
  if (!(await journal.settledLate(key, attempt, transaction, LATE))) return false
  await journal.owed(key, attempt, LATE, 'late')
  return true
}

/** The message to the buyer whose payment settled late. */
const OWED_TOO_LATE =
  'This payment was transferred after its purchase had ended, so it bought nothing. The amount is recorded as a debt to ' +
  'you. Do not send it again: contact the operator with the transaction. You can pay for the answer anew.'

/** The error for a buyer who paid and gets no answer. */
export function owedError({ transaction, cause }: Pick<PaymentRecord, 'transaction' | 'cause'>): ServiceError {
  return new ServiceError(
    'payment_owed',
    isSettledByOthers({ cause }) ? OWED_ELSEWHERE : cause === 'late' ? OWED_TOO_LATE : undefined,
    { fields: { transaction } },
  )
}

/**
 * Call this when the token reports a payment as used. If the payment settled after it was released, this records the
 * debt and throws `payment_owed`, because it would be wrong to report that nothing was charged.
 */
export async function assertNotSettledLate(
  journal: Pick<Journal, 'find' | 'settledLate' | 'owed'>,
  settler: Pick<Settler, 'status'>,
  key: PaymentKey,
): Promise<void> {
  const record = await journal.find(key)
  if (!mayStillSettle(record)) return
  const outcome = await settler.status(record, { maySend: false })
  if (outcome.state !== 'settled') return
  const { transaction, provisional } = outcome
  if (provisional)
    throw new ServiceError(
      'settlement_pending',
      'This payment was settled after all, and is not final yet. Repeat this request with the same payment; do not sign a new one.',
      { fields: { transaction } },
    )
  if (await recordLateSettlement(journal, record, transaction)) throw owedError({ transaction, cause: 'late' })
}
