/**
 * Payments that settle after they were released. When our transaction fails, the buyer learns that nothing was charged.
 * But anybody who saw the signed payment can still send it until it expires. If that happens, the buyer has paid
 * without getting an answer, so the payment is recorded as a debt to the buyer.
 */
import { ServiceError } from '../errors.ts'
import type { Hex } from '../config/networks.ts'
import type { PaymentKey, Settler } from '../methods/payment-method.ts'
import { isSettledByOthers, OWED_ELSEWHERE } from './foreign-settlement.ts'
import type { Journal, PaymentRecord } from './journal/journal.ts'
import { OWED_LATE } from './journal/shared-sql.ts'

type LateJournal = Pick<Journal, 'settledLate' | 'owed'>

/** Whether a released payment may still settle: it was sent, so others may have seen it. */
export function mayStillSettle(record: PaymentRecord | null): record is PaymentRecord {
  return record?.state === 'released' && record.intent !== null
}

/**
 * Records a late settlement as a debt. Returns false if the payment is in use again or already recorded. If the process
 * stops between the two steps, recovery does the second.
 */
export async function recordLateSettlement(
  journal: LateJournal,
  { key, attempt }: Pick<PaymentRecord, 'key' | 'attempt'>,
  transaction: Hex,
): Promise<boolean> {
  if (!(await journal.settledLate(key, attempt, transaction))) return false
  await journal.owed(key, attempt, OWED_LATE)
  return true
}

const OWED_TOO_LATE =
  'This payment was transferred after its purchase had ended, so it bought nothing. The amount is recorded as a debt to ' +
  'you. Do not send it again: contact the operator with the transaction. You can pay for the answer anew.'

/** The error for a buyer who paid and gets no answer. */
export function owedError({ transaction, reason }: Pick<PaymentRecord, 'transaction' | 'reason'>): ServiceError {
  return new ServiceError(
    'payment_owed',
    isSettledByOthers({ reason }) ? OWED_ELSEWHERE : reason?.startsWith(OWED_LATE) ? OWED_TOO_LATE : undefined,
    { fields: { transaction } },
  )
}

/**
 * Call this when the token reports a payment as used. If the payment settled after it was released, this records the
 * debt and throws `payment_owed`, because it would be wrong to report that nothing was charged.
 */
export async function assertNotSettledLate(
  journal: LateJournal & Pick<Journal, 'find'>,
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
  if (await recordLateSettlement(journal, record, transaction)) throw owedError({ transaction, reason: OWED_LATE })
}
