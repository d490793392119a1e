/**
 * Money that came for a payment which had been given back. After our own transaction has failed, whoever saw the
 * authorization can send it until its time is over, and the buyer has been told that nothing was charged: so what
 * arrives is booked as a sale without an answer, which is a debt.
 */
import { ServiceError } from '../errors.ts'
import type { Journal, PaymentRecord } from './journal/journal.ts'
import type { PaymentKey, Settler } from '../methods/payment-method.ts'
import type { Hex } from '../config/networks.ts'

type Books = Pick<Journal, 'settledLate' | 'owed'>

/** Whether money for this payment would be late: it was sent from here, so others have seen it, and was given back. */
export function isOpenToLate(record: PaymentRecord | null): record is PaymentRecord {
  return record?.state === 'released' && record.intent !== null
}

/** Books it. False where the payment has been taken up again, or is booked already. A crash between leaves it open. */
export async function bookLate(
  journal: Books,
  { key, attempt }: Pick<PaymentRecord, 'key' | 'attempt'>,
  transaction: Hex,
): Promise<boolean> {
  if (!(await journal.settledLate(key, attempt, transaction))) return false
  await journal.owed(key, attempt, 'paid after it was given back')
  return true
}

/** What a buyer is told whose money is here and whose answer is not. */
export function owedError(transaction: Hex | null): ServiceError {
  return new ServiceError(
    'payment_already_used',
    'This payment was settled and its answer is lost. It is listed as a debt to you; write to the operator.',
    { fields: { transaction } },
  )
}

/**
 * The token says that a payment is used. Throws where it was used to pay us after we had given it back: then it is
 * booked, and never called uncharged.
 */
export async function assertNotLate(
  journal: Books & Pick<Journal, 'find'>,
  settler: Pick<Settler, 'status'>,
  key: PaymentKey,
): Promise<void> {
  const record = await journal.find(key)
  if (!isOpenToLate(record)) return
  const outcome = await settler.status(record)
  if (outcome.state !== 'settled' || outcome.provisional) return
  if (await bookLate(journal, record, outcome.transaction)) throw owedError(outcome.transaction)
}
