/**
 * Who may get a stored answer again. Once a payment has settled, anybody can read its signature on the chain and present
 * it, and most requests are easy to guess. So a caller must show more than the payment: the name that its buyer gave the
 * purchase, which is on no chain, or the address it was bought from. An answer that never reached its buyer waits for
 * him at any address. A plan's token does not, because it opens routes for days; its buyer can sign for it with the
 * wallet instead.
 */
import { ServiceError } from '../errors.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { PaymentRecord } from './journal/journal.ts'
import type { Caller } from './presented-payment.ts'

/** Whether a caller sends the name of the purchase, or comes from the same address without another name. */
export function isBuyer(bought: Caller, caller: Caller): boolean {
  if (bought.identifier !== null && bought.identifier === caller.identifier) return true
  const isOtherPurchase = bought.identifier !== null && caller.identifier !== null
  return !isOtherPurchase && bought.place === caller.place
}

/**
 * Whether the answer may be on its way to its buyer right now, so that any other caller has to wait.
 * @throws ServiceError `idempotency_conflict` or `forbidden` if the caller may not have the answer at all
 */
export function mustWaitForDelivery({ plan }: Operation, record: PaymentRecord, caller: Caller): boolean {
  if (isBuyer(record, caller) || record.state === 'owed') return false
  if (record.identifier !== null)
    throw new ServiceError(
      'idempotency_conflict',
      'This payment bought its answer under a name. Send it with the Idempotency-Key, or the payment-identifier, of that purchase.',
    )
  // Nobody else has seen a payment that was never sent to the chain.
  if (record.answer === null || record.state === 'answered') return false
  if (plan)
    throw new ServiceError(
      'forbidden',
      'The token this payment bought is given again only where it was bought from, or to the wallet that signs for it: see the note of the list of plans. Do not pay again.',
    )
  if (record.deliveredAt === null) return true
  throw new ServiceError(
    'forbidden',
    'The answer this payment bought was delivered, and is given again only where it was bought from. Name a purchase (Idempotency-Key, payment-identifier) to fetch its answer again from anywhere.',
  )
}
