/**
 * Who may get a stored answer again. Once a payment has settled, anybody can copy its signature from the chain, and
 * most requests are easy to guess. So a caller must also send the identifier of the purchase, which is on no chain, or
 * come from the network address that bought it. An answer that was never delivered is available from any address. The
 * token of a plan is not, because it gives access for days; its buyer can sign for it with the wallet instead.
 */
import { ServiceError } from '../errors.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { PaymentRecord } from './journal/journal.ts'
import type { Caller } from './presented-payment.ts'

/** Whether a caller sends the identifier of the purchase, or comes from the same address without another identifier. */
export function isBuyer(bought: Caller, caller: Caller): boolean {
  if (bought.identifier !== null && bought.identifier === caller.identifier) return true
  const isOtherPurchase = bought.identifier !== null && caller.identifier !== null
  return !isOtherPurchase && bought.place !== null && bought.place === caller.place
}

/**
 * Whether the answer may be in delivery to its buyer right now, so that other callers have to wait.
 * @throws ServiceError `idempotency_conflict` or `forbidden` if the caller must not get the answer
 */
export function mustWaitForDelivery({ plan }: Operation, record: PaymentRecord, caller: Caller): boolean {
  if (isBuyer(record, caller) || record.state === 'owed') return false
  if (record.identifier !== null)
    throw new ServiceError(
      'idempotency_conflict',
      'This answer was bought with an identifier. Send the Idempotency-Key, or the payment-identifier, of that purchase.',
    )
  // Only the buyer knows a payment that was never sent to the chain.
  if (record.answer === null || record.state === 'answered') return false
  if (plan)
    throw new ServiceError(
      'forbidden',
      'The token of this payment is only available again from the network address that bought it, or by signing for it with the wallet: see the note in the list of plans. Do not pay again.',
    )
  if (record.deliveredAt === null) return true
  throw new ServiceError(
    'forbidden',
    'This answer was delivered, and is only available again from the network address that bought it. Send an Idempotency-Key or a payment-identifier with a purchase to fetch its answer again from anywhere.',
  )
}
