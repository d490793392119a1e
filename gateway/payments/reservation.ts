/**
 * The reservation of a payment, before any work is done for it, or before a stored answer is settled for it. The chain
 * and the limits of its payer have to allow it.
 */
import { RateLimited, ServiceError } from '../errors.ts'
import type { DecodedPayment, Settler } from '../methods/payment-method.ts'
import { invalid } from '../x402/payment-envelope.ts'
import type { PaymentRequirements, Refusal } from '../x402/payment-requirements.ts'
import {
  type HeldAmount,
  type Journal,
  JournalError,
  PayerLimited,
  type Reservation,
  type Reserved,
} from './journal/journal.ts'
import { mayStillSettle } from './debts.ts'
import type { Connection, PaidAnswer, PresentedPayment } from './payment.ts'
import type { Payments } from './payments.ts'
import { BLOCK_TIME_LAG_SECONDS, type PaymentInProgress } from './payments-in-progress.ts'
import { notRecordedError, type Purchase } from './purchase.ts'

/**
 * Checks with the settler whether a payment can be settled together with the payer's other payments in progress.
 * @param proven whether the offline check verified the signature. Only then is its amount held before the check:
 *   otherwise anybody could block a payer's balance
 */
export async function checkOnline(
  { settler, inProgress }: Payments,
  work: PaymentInProgress<PaidAnswer>,
  { payment, nodeCalls }: Pick<PresentedPayment, 'payment' | 'nodeCalls'>,
  requirements: PaymentRequirements,
  proven: boolean,
): Promise<Refusal | null> {
  if (proven) work.holdBalance()
  else await nodeCalls.countCodeCheck(proven)
  const ahead = inProgress.heldBefore(payment)
  const refusal = await settler.check(payment, requirements, { proven, ahead, nodeCalls })
  if (proven) {
    // The signature is that of a key, and still the code of the account decides what becomes of it (EIP-7702).
    if ((settler.codeHashOf?.(payment) ?? null) !== null) await nodeCalls.countCodeCheck(proven)
    return refusal
  }
  if (refusal) return refusal
  // The check has verified the signature. It did not count the payments that were held while it ran.
  work.holdBalance()
  const since = inProgress.heldBefore(payment)
  if (since.every((each) => ahead.includes(each))) return null
  return settler.check(payment, requirements, { proven: true, ahead: since, nodeCalls })
}

/**
 * Checks a reserved payment together with those that were reserved before it, unless `checkOnline` counted them all: some
 * may be of another process, or have overtaken this one. Releases the reservation and throws if the balance does not
 * cover all. The order of the journal decides, because it is the same for every process.
 */
export async function releaseUnlessCovered(
  { settler, inProgress, now }: Payments,
  purchase: Purchase,
  payment: DecodedPayment,
  requirements: PaymentRequirements,
  reservedBefore: readonly HeldAmount[],
): Promise<void> {
  if (reservedBefore.length === 0) return
  const nowSeconds = Math.floor(now().getTime() / 1000)
  const ahead = reservedBefore.filter(({ expiresAt }) => Number(expiresAt) + BLOCK_TIME_LAG_SECONDS >= nowSeconds)
  const counted = new Set(inProgress.heldBefore(payment).map(({ identity }) => identity))
  if (ahead.every(({ identity }) => counted.has(identity))) return
  try {
    const problem = await settler.check(payment, requirements, { proven: true, ahead })
    if (problem) throw invalid(problem.message, problem.reason)
  } catch (error) {
    await purchase.release(error)
    throw error
  }
}

/** The gas terms of a reservation: whether we pay for its settlement, and the code of the payer's account. */
export function gasTerms(
  settler: Pick<Settler, 'codeHashOf'>,
  payment: DecodedPayment,
): Required<Pick<Reservation, 'payerCode' | 'paysGas'>> {
  const payerCode = settler.codeHashOf?.(payment)
  return { payerCode: payerCode ?? null, paysGas: payerCode !== undefined }
}

/**
 * Waits until a payer that has left calls unpaid may have another one under way: those before it may all end unpaid too.
 * Throws `rate_limited` if it has left too many, or has to wait longer.
 */
export async function callInTurn(
  { inProgress, pause, unpaidCalls }: Payments,
  { payment, connection }: Pick<PresentedPayment, 'payment' | 'connection'>,
): Promise<void> {
  await unpaidCalls.hear(payment.payer)
  for (let waitedMs = 0; ; waitedMs += TURN_MS) {
    const room = unpaidCalls.roomOf(payment.payer)
    if (room < 1) throw unpaidCalls.refusal(payment.payer)
    if (inProgress.heldBefore(payment).length < room) return
    if (waitedMs >= MAX_TURN_MS || connection.hasLeft) throw tooManyError()
    await pause(TURN_MS)
  }
}

/** How long a payment waits until its payer may have another one unsettled, and the time between two tries. */
const MAX_TURN_MS = 15_000
const TURN_MS = 150

/**
 * Reserves a payment. If the payer has as many unsettled payments as it may have, waits for them. Throws
 * `payment_invalid` for a payment that has failed on the chain, and `rate_limited` if the payer has to wait longer.
 */
export async function reserveInTurn(
  { journal, now, pause }: Payments,
  reservation: Reservation,
  connection: Connection,
): Promise<Reserved> {
  for (let waitedMs = 0; ; waitedMs += TURN_MS)
    try {
      return await journal.reserve(reservation)
    } catch (error) {
      if (error instanceof JournalError) throw await unrecordedError(journal, reservation.key, error)
      if (!(error instanceof PayerLimited)) throw error
      const { limit } = error
      if (limit.reason === 'reverted') throw invalid(REVERTED.message, REVERTED.reason)
      if (limit.reason === 'cooling')
        throw new RateLimited(
          'Payments of this account failed on the chain, at our expense. Nothing was charged.',
          (limit.until - now().getTime()) / 1000,
        )
      if (waitedMs >= MAX_TURN_MS || connection.hasLeft) throw tooManyError()
      await pause(TURN_MS)
    }
}

const RETRY_SECONDS = 2

function tooManyError(): RateLimited {
  return new RateLimited(
    'Too many payments of this payer are not settled yet. Nothing was charged. Each payment that settles allows one more at once.',
    RETRY_SECONDS,
  )
}

const REVERTED: Refusal = {
  reason: 'invalid_transaction_state',
  message:
    'This payment was sent, and failed on the chain. It is not sent again. Sign a new payment, with a new nonce.',
}

/**
 * The 503 of a payment that cannot be reserved. Nothing was charged, unless it was sent and released before: others may have
 * settled it since, and nobody can look now.
 */
export async function unrecordedError(
  journal: Pick<Journal, 'find'>,
  key: DecodedPayment['key'],
  cause: unknown,
): Promise<ServiceError> {
  if (mayStillSettle(await journal.find(key))) return new ServiceError('ledger_unavailable', undefined, { cause })
  return notRecordedError(cause)
}
