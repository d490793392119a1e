/**
 * Idempotent replay: returns the answer that a payment has already bought. It runs before all other checks, so that a
 * buyer gets the stored answer even if the price, the schema or the route has changed since.
 */
import { ServiceError } from '../errors.ts'
import { type DecodedPayment, methodOf, type OfflineRefusal, type PaymentMethod } from '../methods/payment-method.ts'
import type { Operation } from '../plugin/catalog.ts'
import { invalid } from '../x402/payment-envelope.ts'
import type { PaymentRequirements } from '../x402/payment-requirements.ts'
import type { Journal, PaymentRecord, StoredAnswer } from './journal/journal.ts'
import { assertNotSettledLate, causeToBeOwed, owedError } from './debts.ts'
import type { PaidAnswer, PresentedPayment } from './payment.ts'
import type { Payments } from './payments.ts'
import {
  createPurchase,
  finishSettlement,
  pendingError,
  type PurchaseParts,
  receiptOf,
  reversedError,
  settleAnswer,
} from './purchase.ts'
import { checkOnline, gasTerms, releaseUnlessCovered, reserveInTurn } from './reservation.ts'
import { assertAccess, hasAccess, type ReplayAccess } from './replay-access.ts'
import { onlySales } from './unpaid-calls.ts'

/** How often the journal is read while another process works on a payment. */
const POLL_MS = 100

/**
 * Returns the answer that a payment has bought or is buying right now; null if it has bought nothing.
 * @throws ServiceError `sign_in_required` if the caller has not proved that the purchase is his, `payment_conflict` if it
 *   was used for another request, `settlement_pending` while its outcome is open, `payment_already_used` if its answer is
 *   gone
 */
export async function replay(
  payments: Payments,
  operation: Operation,
  presented: PresentedPayment,
): Promise<PaidAnswer | null> {
  const { methods, journal, inProgress, signIn, now, pause } = payments
  const { payment } = presented
  const { key } = payment
  const giveUpAt = now().getTime() + operation.timeoutSeconds * 1000
  const access = { claim: presented, isPlan: operation.plan !== null, signIn, now }
  for (;;) {
    const shared = await outcomeInProgress(payments, presented, access)
    if (shared?.mustRefetch) await assertMayRefetch(journal, shared.record ?? payment)
    if (shared) return shared
    const record = await journal.find(key)
    if (!record || record.state === 'released') {
      if (inProgress.find(key)) continue
      // Others may have read it from the chain, and could spend it for something else.
      if (record?.transaction && provesRecord(methods, payment, record)) await assertAccess(access, record)
      return null
    }
    if (!provesRecord(methods, payment, record)) {
      if (isSigned(methods, payment)) throw nonceConflict(record)
      return null
    }
    // A debt reveals no purchase, and its identifier may belong to a later one.
    if (record.state === 'owed' || causeToBeOwed(record) !== null) throw owedError(record)
    // Nobody but the buyer may learn what was bought, so this comes first.
    if (isForgotten(record) && !(await hasAccess(access, record))) throw forgottenError(record)
    await assertAccess(access, record)
    if (record.fingerprint !== presented.fingerprint) throw otherRequestError(record)
    if (inProgress.find(key)) continue
    // Another process is working on a reserved payment: wait for the journal to show the outcome.
    if (record.state !== 'reserved') {
      const paid = await finishRecord(payments, operation, record, presented)
      if (paid) return paid
      continue
    }
    if (now().getTime() > giveUpAt || presented.connection.hasLeft) {
      const { network } = methodOf(methods, record.network)
      throw pendingError(receiptOf(record, network, payment.envelope.version, '', 'settlement_pending'))
    }
    await pause(POLL_MS)
  }
}

/**
 * Whether `replay` may have something for a payment: an answer, a conflict or a debt. It needs nothing of the request,
 * so it can be asked before the body is read.
 */
export async function isKnown({ methods, journal, inProgress }: Payments, payment: DecodedPayment): Promise<boolean> {
  const entry = inProgress.find(payment.key)
  if (entry) return entry.request.payment.proof === payment.proof || isSigned(methods, payment)
  const record = await journal.find(payment.key)
  if (!record || record.state === 'released') return false
  return provesRecord(methods, payment, record) || isSigned(methods, payment)
}

/** Waits for this process's own work on the payment, if there is any, and shares its outcome with the buyer. */
async function outcomeInProgress(
  { methods, inProgress }: Payments,
  presented: PresentedPayment,
  access: ReplayAccess,
): Promise<PaidAnswer | null> {
  const { payment } = presented
  const entry = inProgress.find(payment.key)
  if (!entry) return null
  const { identifier, place, fingerprint } = entry.request
  const { payer, network } = payment
  const isProved = entry.request.payment.proof === payment.proof || isSigned(methods, payment)
  const isBuyer = isProved && (await hasAccess(access, { payer, network, identifier, place, deliveredAt: null }))
  if (isBuyer && fingerprint !== presented.fingerprint) throw otherRequestError(null)
  if (isProved && !hasSameTerms(entry.request.payment, payment)) throw nonceConflict(null)
  const outcome = await entry.outcome
  // A caller who has not proved that the purchase is his waits too, and is then treated like any other caller.
  if (!isBuyer || !outcome) return null
  if ('error' in outcome) throw outcome.error
  return replayed(outcome.result)
}

/** Whether two payments with the same nonce authorise the same transfer. */
function hasSameTerms(one: DecodedPayment, other: DecodedPayment): boolean {
  const { amount, payTo, startsAt, expiresAt } = other
  const isSameTime = one.startsAt === startsAt && one.expiresAt === expiresAt
  return one.amount === amount && one.payTo === payTo && isSameTime
}

/** Whether the presented payment proves the one of the record. The same payment may have several valid signatures. */
export function provesRecord(
  methods: readonly PaymentMethod[],
  payment: DecodedPayment,
  record: PaymentRecord,
): boolean {
  if (record.proof === payment.proof) return true
  return verifyAt(methods, payment, requirementsOf(methods, record), record.startsAt) === null
}

/** Whether the signature of a payment is valid, independent of any requirements. */
function isSigned(methods: readonly PaymentMethod[], payment: DecodedPayment): boolean {
  const { amount, payTo, startsAt } = payment
  const { scheme, network } = methodOf(methods, payment.network)
  const requirements = { scheme, network, amount, payTo, maxTimeoutSeconds: Number.MAX_SAFE_INTEGER }
  return verifyAt(methods, payment, requirements, startsAt) === null
}

/** Verifies a payment as of the first second in which it is valid. */
function verifyAt(
  methods: readonly PaymentMethod[],
  payment: DecodedPayment,
  requirements: PaymentRequirements,
  startsAt: bigint,
): OfflineRefusal | null {
  return methodOf(methods, requirements.network.caip2).verify(payment, requirements, Number(startsAt) + 1)
}

function requirementsOf(methods: readonly PaymentMethod[], record: PaymentRecord): PaymentRequirements {
  const { amount, payTo, startsAt, expiresAt } = record
  const { scheme, network } = methodOf(methods, record.network)
  return { scheme, network, amount, payTo, maxTimeoutSeconds: Number(expiresAt - startsAt) }
}

/** Returns the stored answer of a record, and settles it first if necessary. Null: read the journal again. */
async function finishRecord(
  payments: Payments,
  operation: Operation,
  record: PaymentRecord,
  presented: PresentedPayment,
): Promise<PaidAnswer | null> {
  const { methods, journal, settler, inProgress, unpaidCalls } = payments
  const { payment } = presented
  const { answer } = record
  if (record.state === 'reversed') {
    const { network } = methodOf(methods, record.network)
    throw reversedError(receiptOf(record, network, payment.envelope.version, '', 'invalid_transaction_state'))
  }
  if (record.state === 'settled') {
    const paid = replayed(settledAnswer(payments, record, payment))
    if (paid.mustRefetch) await assertMayRefetch(journal, record)
    return paid
  }
  if (answer?.body.length === 0 && record.state === 'answered') {
    // The payment of a stream that never started. Nothing is stored, so the stream is bought again.
    await journal.released(record.key, record.attempt, 'the stream was not delivered')
    return null
  }
  if (!answer) throw new Error(`payment ${record.key} is ${record.state} without an answer`)

  const requirements = requirementsOf(methods, record)
  const work = inProgress.start(presented)
  if (!work) throw new Error(`payment ${record.key} was started twice`)
  const purchase = {
    payments,
    operation,
    presented,
    requirements,
    record,
    work,
    unpaidCalls: onlySales(unpaidCalls),
  }
  try {
    if (record.state === 'answered') {
      const paid = await settleKept(purchase, answer)
      if (!paid) work.finish(null)
      return paid
    }
    if (!(await journal.claim(record.key, record.attempt))) {
      work.finish(null, { keepHold: true })
      return null
    }
    const paid = await finishSettlement(purchase, record, await settler.status(record), answer)
    if (paid.body.length > 0) return paid
    await assertMayRefetch(journal, record)
    return replayed(paid)
  } catch (error) {
    work.finish({ error }, { keepHold: record.state === 'submitted' && !isFailed(error) })
    throw error
  }
}

/**
 * Settles the payment of a buyer who left before it was sent, with the answer that was kept for it. Since then the purse
 * may have been emptied, and the payer may have other payments unsettled: so the payment is checked and reserved again,
 * as a new attempt. Null: another process was faster.
 */
async function settleKept(purchase: PurchaseParts, answer: StoredAnswer): Promise<PaidAnswer | null> {
  const { payments, presented, requirements, record, work } = purchase
  const { journal, settler, methods, now } = payments
  const { payment, connection } = presented
  const refusal = methodOf(methods, payment.network).verify(payment, requirements, Math.floor(now().getTime() / 1000))
  // The settler accepted the same proof when the payment was reserved.
  const isAccepted = refusal?.needsSettler === true && record.proof === payment.proof
  const problem =
    refusal && !isAccepted ? refusal : await checkOnline(payments, work, presented, requirements, refusal === null)
  if (problem) {
    if (!(await journal.released(record.key, record.attempt, problem.reason))) return null
    if (problem.reason === 'invalid_transaction_state') await assertNotSettledLate(journal, settler, record.key)
    throw invalid(problem.message, problem.reason)
  }
  if (!(await journal.released(record.key, record.attempt, 'its buyer came back'))) return null
  const reservation = { ...record, ...gasTerms(settler, payment) }
  const { reserved, record: current, ahead } = await reserveInTurn(payments, reservation, connection)
  if (!reserved) return null
  const again = { ...purchase, record: current }
  await releaseUnlessCovered(payments, createPurchase(again), payment, requirements, ahead)
  return settleAnswer(again, answer)
}

/** Whether an error proves that the money did not move. */
function isFailed(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'settlement_failed'
}

/** The stored answer of a settled payment. Throws `payment_already_used` if it is no longer available. */
function settledAnswer({ methods, now }: Payments, record: PaymentRecord, payment: DecodedPayment): PaidAnswer {
  const { answer, transaction } = record
  if (!answer) throw forgottenError(record)
  if (answer.body.length === 0 && Math.floor(now().getTime() / 1000) >= Number(record.expiresAt))
    throw new ServiceError(
      'payment_already_used',
      'This payment was settled, and the time to fetch its stream again is over.',
      { fields: { transaction } },
    )
  const { network } = methodOf(methods, record.network)
  return { ...answer, receipt: receiptOf(record, network, payment.envelope.version, transaction ?? ''), record }
}

/** How often one payment opens its stream again. Each time costs the product as much as the first. */
export const MAX_REFETCHES = 20

/** Counts that a stream is fetched again. Throws `payment_already_used` if that happened too often. */
async function assertMayRefetch(
  journal: Pick<Journal, 'refetched'>,
  { key, transaction = null }: Pick<PaymentRecord, 'key'> & Partial<Pick<PaymentRecord, 'transaction'>>,
): Promise<void> {
  if (await journal.refetched(key, MAX_REFETCHES)) return
  throw new ServiceError(
    'payment_already_used',
    `This payment was settled, and its stream was fetched again ${MAX_REFETCHES} times, which is the limit. Sign a new payment to open it once more.`,
    { fields: { transaction } },
  )
}

/**
 * Whether the answer of a settled payment is no longer stored. The journal drops with it what would identify the buyer.
 */
function isForgotten({ state, answer }: PaymentRecord): boolean {
  return state === 'settled' && answer === null
}

function forgottenError({ transaction }: PaymentRecord): ServiceError {
  return new ServiceError('payment_already_used', 'This payment was settled and its answer is no longer stored.', {
    fields: { transaction },
  })
}

/** Marks an answer as a replay. No RFC defines a header for this yet; `idempotent-replay` is the name in common use. */
function replayed(paid: PaidAnswer): PaidAnswer {
  if (paid.body.length === 0) return { ...paid, mustRefetch: true }
  return { ...paid, headers: { ...paid.headers, 'idempotent-replay': 'true' } }
}

/** The error for a second payment under the same identifier, because one purchase must not be charged twice. */
export function identifierConflict({ route, state }: PaymentRecord): ServiceError {
  return new ServiceError(
    'idempotency_conflict',
    `This idempotency key belongs to another payment, made for ${route} and ${state}. Send that payment again to get ` +
      'its answer; this one was not charged. A new purchase needs a new key.',
  )
}

/** The error for another authorization with a used nonce: the token accepts only one of them. */
export function nonceConflict(record: PaymentRecord | null): ServiceError {
  const where = record ? `, made for ${record.route} and ${record.state}` : ' in progress'
  return new ServiceError(
    'payment_conflict',
    `The nonce of this payment belongs to another payment${where}. Send that payment again to get its answer; this one ` +
      'was not charged. A new purchase needs a new nonce.',
  )
}

function otherRequestError(record: PaymentRecord | null): ServiceError {
  const where = record ? ` It was used for ${record.route}.` : ''
  return new ServiceError('payment_conflict', `This payment belongs to another request.${where} Sign a new one.`)
}
