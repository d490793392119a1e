/**
 * Admission by payment, in two steps.
 *
 * Before the body of a request is read, its payment is checked offline. Anybody can send a large body, and to read one costs
 * more than to check a signature. So a payment that cannot be accepted is refused first, and a body of more than 64 kB is
 * read only for a payer who could pay, and who has not let many such bodies go unpaid. The journal is asked last, because
 * a payment that has bought its answer gets it again, whatever became of its price and its time.
 *
 * Before the call does its work, its payment is checked in full and reserved. If another call, here or in another process,
 * works on the same payment, its outcome counts.
 */
import type { Awaitable } from '../awaitable.ts'
import { ServiceError } from '../errors.ts'
import {
  decodePayment,
  type DecodedPayment,
  type Listing,
  methodOf,
  type OfflineRefusal,
} from '../methods/payment-method.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Counted } from '../stores/shared-limit.ts'
import { identifierOf } from '../x402/payment-identifier.ts'
import {
  createRequirements,
  isForAnotherRoute,
  offeredOn,
  type PaymentRequirements,
  type Refusal,
} from '../x402/payment-requirements.ts'
import type { Reservation } from './journal/journal.ts'
import { assertNotSettledLate } from './debts.ts'
import type { OfflineCheck, PaidAnswer, PaymentRequest, PresentedPayment, UnreadPayment } from './payment.ts'
import type { Payments } from './payments.ts'
import { createPurchase, pendingError, type Purchase, receiptOf } from './purchase.ts'
import { claimBy } from './replay-access.ts'
import { identifierConflict, isKnown, nonceConflict, provesRecord, replay } from './replay.ts'
import {
  callInTurn,
  checkOnline,
  gasTerms,
  releaseUnlessCovered,
  reserveInTurn,
  unrecordedError,
} from './reservation.ts'

/**
 * Reads the payment of a request; null if there is none. The same payment may be sent more than once, e.g. in two
 * headers.
 * @throws ServiceError `payment_invalid`; InvalidInput (422) for a malformed Idempotency-Key
 */
export function presentedPayment({ methods, nodeCalls }: Payments, request: PaymentRequest): UnreadPayment | null {
  const { id: callId, caller: connection, credential, idempotencyKey, bodyBytes } = request
  const [payment, ...others] = (credential?.payments ?? []).map((each) => decodePayment(each, methods))
  if (!payment) return null
  if (others.some(({ key }) => key !== payment.key))
    throw new ServiceError('payment_invalid', 'The call has two different payments. Send one of them.', {
      reason: 'invalid_payload',
    })
  const claim = claimBy(request, identifierOf(payment.envelope, idempotencyKey))
  const counted: Counted[] = []
  const account = nodeCalls.account(payment.payer, claim.callerPlace, counted)
  return { ...claim, payment, callId, bodyBytes, connection, counted, nodeCalls: account }
}

/** Larger bodies are read only for payers who could pay. */
const SMALL_BODY_BYTES = 65_536

/** Whether a body is read only for a payer who could pay. */
const isLargeBody = (bodyBytes: number): boolean => bodyBytes > SMALL_BODY_BYTES

/**
 * Checks a payment against what the operation asks for, offline. Throws `payment_invalid` if no settler could accept it.
 * @param version of the catalog that the price comes from
 */
function checkOffline(
  payments: Payments,
  operation: Operation,
  payment: DecodedPayment,
  version: string,
): OfflineCheck {
  const { baseUrl, methods, now } = payments
  const { requirements, priceVersion } = requirementsMet(payments, operation, payment, version)
  const atSeconds = Math.floor(now().getTime() / 1000)
  const refusal = methodOf(methods, requirements.network.caip2).verify(payment, requirements, atSeconds)
  if (refusal && !refusal.needsSettler) throw invalidError(refusal)
  if (isForAnotherRoute(operation, baseUrl, payment.envelope)) throw invalidError(OTHER_ROUTE)
  return { requirements, priceVersion, refusal, atSeconds }
}

/**
 * Decides whether the body of a request may be read for its payment. Returns what the offline check found, or null for a
 * payment that is refused by now and has bought something before. Throws `payment_invalid`, `rate_limited`, or
 * `settler_unavailable`.
 */
export function checkEarly(
  payments: Payments,
  operation: Operation,
  unread: UnreadPayment,
  version: string,
): Awaitable<OfflineCheck | null> {
  const { payment, bodyBytes } = unread
  let checked: OfflineCheck
  try {
    checked = checkOffline(payments, operation, payment, version)
  } catch (error) {
    return unlessKnown(payments, unread, error)
  }
  if (bodyBytes === 0 || (checked.refusal === null && !isLargeBody(bodyBytes))) return checked
  return lookAtPayer(payments, unread, checked)
}

async function unlessKnown(payments: Payments, { payment, bodyBytes }: UnreadPayment, error: unknown): Promise<null> {
  if (!(await isKnown(payments, payment))) throw error
  // Settled payments are public. Those who repeat one must not use up what its buyer may send.
  if (isLargeBody(bodyBytes)) await payments.largeBodies.count(`again ${payment.key}`)
  return null
}

/** Asks the settler what it knows of the payer, before a large body is read or a signature that it has to verify counts. */
async function lookAtPayer(
  payments: Payments,
  unread: UnreadPayment,
  checked: OfflineCheck,
): Promise<OfflineCheck | null> {
  const { settler, inProgress, largeBodies } = payments
  const { payment, bodyBytes, nodeCalls, counted } = unread
  const { requirements, refusal } = checked
  const { ready, reason } = settler.health(requirements.network)
  if (!ready) throw new ServiceError('settler_unavailable', undefined, { cause: reason })
  const isLarge = isLargeBody(bodyBytes)
  const proven = refusal === null
  let problem = (await settler.mayPay?.(payment, requirements, { proven, nodeCalls })) ?? null
  if (!problem && isLarge && !proven) {
    await nodeCalls.countCodeCheck(proven)
    problem = await settler.check(payment, requirements, { proven, ahead: inProgress.heldBefore(payment), nodeCalls })
  }
  if (problem) return unlessKnown(payments, unread, invalidError(refusalOf(problem, refusal)))
  if (isLarge) counted.push(await largeBodies.count(payment.payer))
  return checked
}

/** The offline check says more about the same problem. */
function refusalOf(problem: Refusal, offline: OfflineRefusal | null): Refusal {
  return offline?.reason === problem.reason ? offline : problem
}

/**
 * The requirements to check a payment against, at the current or an accepted former price, and that price's catalog
 * version.
 */
function requirementsMet(
  { recipients, methods, formerPrices }: Payments,
  operation: Operation,
  { amount, network }: DecodedPayment,
  version: string,
): Pick<OfflineCheck, 'requirements' | 'priceVersion'> {
  const offered = offeredOn(operation, recipients)
  const recipient = offered.find((each) => each.network.caip2 === network) ?? offered[0]
  const requirements = createRequirements(operation, methodOf(methods, recipient.network.caip2), recipient.payTo)
  const former = amount === requirements.amount ? undefined : formerPrices?.(operation).get(amount)
  if (former === undefined) return { requirements, priceVersion: version }
  return { requirements: { ...requirements, amount }, priceVersion: former }
}

const OTHER_ROUTE: Refusal = {
  reason: 'invalid_payment_requirements',
  message: 'The payment was signed for another route. Request a quote from this route and sign that.',
}

/** The 402 of a refused payment. */
function invalidError({ reason, message, retryAfterSeconds }: Refusal): ServiceError {
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  return new ServiceError('payment_invalid', message, { reason, headers })
}

/** The resource that is sold. */
interface Sold {
  /** The version of the catalog that the price comes from. */
  readonly version: string
  readonly listing: () => Listing
  /** Asks whether the payer may buy. Throws ServiceError to refuse. */
  readonly screen: (payment: DecodedPayment) => Promise<void>
}

/**
 * Checks and reserves a payment. Returns the purchase, or the answer that a duplicate request bought in the meantime. Tries
 * again, a limited number of times and only while the caller waits, if another call, here or in another process, releases
 * the same payment meanwhile. Throws 409 if the payer has used the identifier for another payment.
 */
export async function admitPayment(
  payments: Payments,
  operation: Operation,
  presented: PresentedPayment,
  sold: Sold,
): Promise<Purchase | PaidAnswer> {
  for (let tries = 1; ; tries++) {
    const admitted = await tryToAdmit(payments, operation, presented, sold)
    if (admitted) return admitted
    const bought = await replay(payments, operation, presented)
    if (bought) return bought
    if (tries === MAX_TRIES || presented.connection.hasLeft) throw takenOverError(payments, presented)
    await payments.pause(RETRY_MS)
  }
}

/**
 * How often to try to reserve a payment that others reserve and release at the same time, and the time between two
 * tries.
 */
const MAX_TRIES = 10
const RETRY_MS = 100

/** The 503 of a payment that others work on at the same time. */
function takenOverError({ methods }: Payments, { payment }: PresentedPayment): ServiceError {
  const { network } = methodOf(methods, payment.network)
  return pendingError(receiptOf(payment, network, payment.envelope.version, '', 'settlement_pending'))
}

/**
 * Returns null if another call is working on the payment: then the outcome of that call counts. Throws 409 if the
 * identifier or the nonce belongs to another payment.
 */
async function tryToAdmit(
  payments: Payments,
  operation: Operation,
  presented: PresentedPayment,
  sold: Sold,
): Promise<Purchase | PaidAnswer | null> {
  const { journal, methods, settler, inProgress } = payments
  const { payment, identifier, connection } = presented
  const { requirements, priceVersion, refusal } =
    freshCheck(payments, presented) ?? checkOffline(payments, operation, payment, sold.version)
  const recording = journal.health()
  if (!recording.ready) throw await unrecordedError(journal, payment.key, recording.reason)
  const health = settler.health(requirements.network)
  if (!health.ready) throw new ServiceError('settler_unavailable', undefined, { cause: health.reason })

  const named = identifier === null ? null : await journal.findByIdentifier(payment.payer, identifier)
  if (named && named.key !== payment.key)
    // Nobody has proved yet that a contract wallet signed this: it learns nothing of the wallet's purchase.
    throw refusal ? new ServiceError('idempotency_conflict') : identifierConflict(named)
  const work = inProgress.start(presented)
  if (!work) return null
  try {
    await untilValid(payments, payment)
    const problem = await checkOnline(payments, work, presented, requirements, refusal === null)
    if (problem) {
      // A duplicate request, here or in another process, may have settled the payment: then its outcome counts.
      const current = await journal.find(payment.key)
      if (current && current.state !== 'released') {
        work.finish(null)
        const bought = await replay(payments, operation, presented)
        if (bought) return bought
      }
      if (problem.reason === 'invalid_transaction_state') await assertNotSettledLate(journal, settler, payment.key)
      throw invalidError(refusalOf(problem, refusal))
    }
    // Nobody learns who may buy here without a payment that the payer has signed.
    await sold.screen(payment)
    await callInTurn(payments, presented)
    const reservation = reservationOf(payments, operation, presented, requirements, priceVersion)
    const { reserved, record, ahead } = await reserveInTurn(payments, reservation, connection)
    if (reserved) {
      const purchase = createPurchase({
        payments,
        operation,
        presented,
        requirements,
        record,
        work,
        listing: sold.listing,
        unpaidCalls: payments.unpaidCalls,
      })
      await releaseUnlessCovered(payments, purchase, payment, requirements, ahead)
      return purchase
    }
    if (record.key !== payment.key) throw identifierConflict(record)
    if (!provesRecord(methods, payment, record)) throw nonceConflict(record)
  } catch (error) {
    work.finish(connection.hasLeft ? null : { error })
    throw error
  }
  // The record belongs to another process, or to a call that ended between `replay` and `start`: its outcome counts.
  work.finish(null)
  return null
}

/** The findings before the body was read, unless reading took so long that the payment may have expired. */
function freshCheck({ now }: Payments, { checked }: PresentedPayment): OfflineCheck | null {
  return checked && now().getTime() / 1000 < checked.atSeconds + CHECK_SECONDS ? checked : null
}

/** Shorter than the time for which a payment must be valid when it is checked. */
const CHECK_SECONDS = 3

/** Waits until a payment is valid. A token accepts it only after the second of `startsAt`. */
async function untilValid({ now, pause }: Payments, { startsAt }: DecodedPayment): Promise<void> {
  const remainingMs = (Number(startsAt) + 1) * 1000 - now().getTime()
  // A timer may fire slightly early.
  if (remainingMs > 0) await pause(remainingMs + 10)
}

function reservationOf(
  { settler }: Payments,
  { id, route }: Operation,
  { payment, fingerprint, callId, identifier, place }: PresentedPayment,
  { network: { asset }, payTo, amount }: PaymentRequirements,
  priceVersion: string,
): Reservation {
  const { version } = payment.envelope
  const request = { operation: id, route, fingerprint, callId, identifier, place }
  return { ...payment, ...request, asset, payTo, amount, version, priceVersion, ...gasTerms(settler, payment) }
}
