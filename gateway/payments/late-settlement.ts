/**
 * Payments that settle after they were released. Once our own transaction has failed, anybody who saw the signed payment
 * can still send it until it expires, although the buyer was told that nothing was charged. Such money is recorded as a
 * sale without an answer, which is a debt to the buyer.
 */
import { ServiceError } from '../errors.ts'
import type { Hex } from '../config/networks.ts'
import type { PaymentKey, Settler } from '../methods/payment-method.ts'
import type { Journal, PaymentRecord } from './journal/journal.ts'

type LateJournal = Pick<Journal, 'settledLate' | 'owed'>

/** Whether a payment may still settle late: it was sent from here, so others may have seen it, and was then released. */
export function mayStillSettle(record: PaymentRecord | null): record is PaymentRecord {
  return record?.state === 'released' && record.intent !== null
}

/**
 * Records a late settlement as a debt. Returns false if the payment is in use again or is recorded already. If the
 * process stops between the two steps, recovery finishes the second.
 */
export async function recordLateSettlement(
  journal: LateJournal,
  { key, attempt }: Pick<PaymentRecord, 'key' | 'attempt'>,
  transaction: Hex,
): Promise<boolean> {
  if (!(await journal.settledLate(key, attempt, transaction))) return false
  await journal.owed(key, attempt, 'paid after it was given back')
  return true
}

/** The refusal for a buyer who paid and whose answer is lost. */
export function owedError(transaction: Hex | null): ServiceError {
  return new ServiceError(
    'payment_already_used',
    'This payment was settled and its answer is lost. It is listed as a debt to you; write to the operator.',
    { fields: { transaction } },
  )
}

/**
 * Call it when the token reports a payment as used. If it paid us after it was released, this records the debt and throws
 * `payment_already_used`: the buyer must never read that nothing was charged.
 */
export async function assertNotSettledLate(
  journal: LateJournal & Pick<Journal, 'find'>,
  settler: Pick<Settler, 'status'>,
  key: PaymentKey,
): Promise<void> {
  const record = await journal.find(key)
  if (!mayStillSettle(record)) return
  const outcome = await settler.status(record)
  if (outcome.state !== 'settled' || outcome.provisional) return
  if (await recordLateSettlement(journal, record, outcome.transaction)) throw owedError(outcome.transaction)
}
