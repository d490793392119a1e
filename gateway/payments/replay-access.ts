/**
 * Who is given a kept answer again. Once a payment has settled, its signature stands on the chain for everybody to read
 * and to present, and most requests are easily guessed. So more than the payment has to be shown: the name its buyer
 * gave the purchase, which is on no chain; or the place it was bought from. What never reached its
 * buyer waits for him wherever he is now. A plan's token does not: it opens routes for days, and the wallet can sign
 * for it.
 */
import type { Operation } from '../plugin/catalog.ts'
import { ServiceError } from '../errors.ts'
import type { Caller } from './presented-payment.ts'
import type { PaymentRecord } from './journal/journal.ts'

/** Whether the caller shows the name of the purchase, or comes from its place without another name. */
export function isBuyer(bought: Caller, caller: Caller): boolean {
  if (bought.identifier !== null && bought.identifier === caller.identifier) return true
  const isAnother = bought.identifier !== null && caller.identifier !== null
  return !isAnother && bought.place === caller.place
}

/**
 * Whether the answer may be on its way to its buyer at this moment, so that somebody else has to wait. Throws where it
 * is not for this caller at all.
 */
export function isWithheld({ plan }: Operation, record: PaymentRecord, caller: Caller): boolean {
  if (isBuyer(record, caller) || record.state === 'owed') return false
  if (record.identifier !== null)
    throw new ServiceError(
      'idempotency_conflict',
      'This payment bought its answer under a name. Send it with the Idempotency-Key, or the payment-identifier, of that purchase.',
    )
  // What was never sent to the chain nobody else has seen.
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
