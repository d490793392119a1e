/**
 * One purchase, from the reserved payment to the settled one. The order is: store the answer and the intent, in one
 * write; send the payment; record its settlement; deliver the answer. After a crash at any point, the journal shows what
 * is left to do.
 */
import { ServiceError } from '../errors.ts'
import type { Hex, Network } from '../config/networks.ts'
import { type Listing, methodOf, type Outcome } from '../methods/payment-method.ts'
import type { SaleFields } from '../observe/terminal.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { PaymentRequirements } from '../x402/payment-requirements.ts'
import type { Receipt } from '../x402/settlement-response.ts'
import { foreignNote, OWED_ELSEWHERE, oweForeignSettlement } from './debts.ts'
import { keepAnswer } from './unpaid-answers.ts'
import { type CallEnds, isOfPayer } from './unpaid-calls.ts'
import type { PaidAnswer, PresentedPayment } from './payment.ts'
import type { Payments } from './payments.ts'
import type { PaymentInProgress } from './payments-in-progress.ts'
import { type Journal, JournalError, type PaymentRecord, type StoredAnswer } from './journal/journal.ts'

/** An answer to settle for. A stream, of bytes or of events, is stored with an empty body. */
type Deliverable = StoredAnswer & { readonly stream?: object; readonly events?: object }

export interface Purchase {
  readonly payer: PaymentRecord['payer']
  /** Atomic units. */
  readonly amount: bigint
  /** When the payment was reserved. */
  readonly reservedAt: Date
  /**
   * Stores the answer, settles, and returns the answer with its receipt. Throws SettlementError if it must not leave.
   */
  settle(answer: Deliverable): Promise<PaidAnswer>
  /**
   * Releases the reservation. Does nothing once the settlement has begun. Throws SettlementError if the journal refuses,
   * because another process has taken the payment over.
   */
  release(error: unknown): Promise<void>
}

/** The 402 or 503 of a settlement that did not succeed, or bought nothing, with its receipt. */
export class SettlementError extends ServiceError {
  readonly receipt: Receipt

  constructor(
    code: 'settlement_failed' | 'settlement_pending' | 'payment_owed',
    message: string,
    reason: string,
    receipt: Receipt,
  ) {
    const headers = code === 'settlement_pending' ? { 'retry-after': '2' } : {}
    super(code, message, { reason, headers, fields: { transaction: receipt.transaction } })
    this.receipt = receipt
  }
}

/** Builds the receipt of a payment that was settled by `transaction`, or failed with `errorReason`. */
export function receiptOf(
  { payer, amount }: Pick<PaymentRecord, 'payer' | 'amount'>,
  network: Network,
  version: 1 | 2,
  transaction: Receipt['transaction'],
  errorReason?: string,
): Receipt {
  const receipt = { success: errorReason === undefined, transaction, network, payer, amount, version }
  return errorReason === undefined ? receipt : { ...receipt, errorReason }
}

export interface PurchaseParts {
  readonly payments: Payments
  readonly operation: Operation
  readonly presented: PresentedPayment
  readonly requirements: PaymentRequirements
  readonly record: PaymentRecord
  /** This payment's entry in `inProgress`. */
  readonly work: PaymentInProgress<PaidAnswer>
  /** Describes what is paid for. */
  readonly listing?: () => Listing
  /** Counts whether the call was paid for. */
  readonly unpaidCalls: CallEnds
}

/** Creates the purchase of a reserved payment. */
export function createPurchase(parts: PurchaseParts): Purchase {
  const { payments, presented, record, work, unpaidCalls } = parts
  const { connection } = presented
  const { key, attempt } = record
  let isSettling = false

  const release = async (error: unknown): Promise<void> => {
    if (isSettling) return
    if (connection.hasLeft) unpaidCalls.leftUnpaid(record.payer)
    // A reservation that cannot be released now is released by recovery, because no call works on it.
    const isReleased = (): Promise<boolean> =>
      payments.journal.released(key, attempt, reasonOf(error)).catch((thrown: unknown) => {
        if (thrown instanceof JournalError) return true
        throw thrown
      })
    let outcome: { readonly error: unknown; readonly keepHold: boolean } = { error, keepHold: false }
    try {
      // A write of the answer that failed here may still have been stored. Then another process can send the payment,
      // and nobody may tell the buyer that nothing was charged.
      if (!(await isReleased())) {
        outcome = { error: unknownOutcome(parts, error), keepHold: true }
        throw outcome.error
      }
    } finally {
      // If the caller disconnected, there is nothing to share: a waiting duplicate tries for itself.
      work.finish(connection.hasLeft ? null : { error: outcome.error }, { keepHold: outcome.keepHold })
    }
  }

  const settle = async (answer: Deliverable): Promise<PaidAnswer> => {
    const isEmpty = WITHOUT_BODY.has(answer.status) || (answer.body.length === 0 && !answer.stream && !answer.events)
    if (answer.status < 200 || answer.status > 299 || isEmpty) {
      await release(new ServiceError('product_failed', `the product answered ${answer.status}; not charged`))
      return answer
    }
    if (connection.hasLeft) throw new ServiceError('internal', 'the caller disconnected before the answer was stored')
    isSettling = true
    return settleAnswer(parts, answer)
  }

  return { payer: record.payer, amount: record.amount, reservedAt: new Date(record.updatedAt), settle, release }
}

/** Answers with these statuses reach nobody with a body, whatever the product wrote (RFC 9110, 15.3.5 and 15.3.6). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205])

/** A payment must be valid for at least this long when it is sent, so that its transaction gets into a block. */
const MIN_VALIDITY_SECONDS = 2

/**
 * Settles a payment. The answer is stored with the intent, in one write: nothing is sent before. If the caller has left by
 * then, the answer is kept and nothing is sent. Always finishes the work in `inProgress`.
 */
export async function settleAnswer(parts: PurchaseParts, answer: StoredAnswer): Promise<PaidAnswer> {
  const { payments, operation, presented, requirements, record, work, listing, unpaidCalls } = parts
  const { journal, settler, methods, now } = payments
  const { payment, connection } = presented
  const { key, attempt, payer } = record
  const method = methodOf(methods, payment.network)
  let submittedAt: number | null = null
  let isKept = false
  try {
    // After a slow product, a short payment may be about to expire. Its transaction would fail and cost us gas.
    const isExpired = Number(payment.expiresAt) < Math.floor(now().getTime() / 1000) + MIN_VALIDITY_SECONDS
    const outcome: Outcome = isExpired
      ? { state: 'refused', reason: method.expiredReason, message: EXPIRED }
      : await settler.settle(payment, requirements, {
          wait: operation.wait,
          minBlocks: minBlocksOf(parts),
          ...(listing ? { listing } : {}),
          async record(intent) {
            if (connection.hasLeft) {
              isKept = await keepAnswer(journal, record, answer)
              return false
            }
            const at = now().getTime()
            const isSubmitted = await journal.submitted(key, attempt, intent, { at, answer })
            if (isSubmitted) submittedAt = at
            return isSubmitted
          },
        })
    if (isKept || (outcome.state === 'refused' && (isExpired || isOfPayer(outcome, method))))
      unpaidCalls.leftUnpaid(payer)
    if (!isKept)
      return await finishSettlement(parts, { ...record, updatedAt: submittedAt ?? record.updatedAt }, outcome, answer)
  } catch (thrown) {
    const error = thrown instanceof SettlementError ? thrown : await interrupted(parts, thrown, submittedAt !== null)
    work.finish({ error }, { keepHold: mayMoveLater(error) })
    throw error
  }
  work.finish(null)
  throw new ServiceError('internal', 'the caller disconnected before the payment was sent')
}

/**
 * The `minBlocks` of a settlement. The token of a plan would outlive a reorganisation that takes its payment back, so it
 * waits for `planBlocks` and for one block more than CONFIRM_BLOCKS.
 */
function minBlocksOf({ payments, operation, requirements }: PurchaseParts): number {
  return operation.plan && !requirements.network.isTest ? payments.planBlocks : 1
}

const EXPIRED = 'The payment expired while the answer was produced. Sign a new one that is valid for longer.'

/** Whether the money may still move after this error. Then the amount stays held on the payer's balance. */
function mayMoveLater(error: unknown): boolean {
  return error instanceof SettlementError && error.code === 'settlement_pending'
}

/**
 * Records the outcome of a settlement and shares the answer with waiting duplicates. Throws the error for the caller.
 */
export async function finishSettlement(
  parts: PurchaseParts,
  record: PaymentRecord,
  outcome: Outcome,
  answer: StoredAnswer,
): Promise<PaidAnswer> {
  const { payments, operation, presented, requirements, work } = parts
  const { journal } = payments
  const receipt = (transaction: Receipt['transaction'], reason?: string): Receipt =>
    receiptOf(record, requirements.network, presented.payment.envelope.version, transaction, reason)
  const pending = (transaction: Receipt['transaction']): SettlementError =>
    pendingError(receipt(transaction, 'settlement_pending'), needsSignIn(parts))
  switch (outcome.state) {
    case 'settled': {
      const { transaction, provisional = false, foreignSender, gasUsed, isOwed = false } = outcome
      if (provisional && (operation.wait === 'confirmed' || isOwed)) throw pending(transaction)
      if (isOwed) {
        await oweForeignSettlement(journal, record, transaction, foreignSender)
        const reason = 'invalid_transaction_state'
        throw new SettlementError('payment_owed', OWED_ELSEWHERE, reason, receipt(transaction, reason))
      }
      const current = provisional
        ? ({ ...record, state: 'submitted', answer, transaction } as const)
        : await settledRecord(payments, { ...record, answer }, { transaction, foreignSender, gasUsed })
      const paid = { ...answer, receipt: receipt(transaction), record: current }
      work.finish({ result: paid }, { keepHold: provisional })
      if (provisional) void recordLater(parts, record, outcome.later)
      else parts.unpaidCalls.sold(record.payer)
      return paid
    }
    case 'refused':
      // The journal returns false if another process has claimed the payment and may be sending it.
      if (!(await journal.refused(record.key, record.attempt, outcome)) && outcome.unsent) throw pending('')
      throw new SettlementError(
        'settlement_failed',
        `${outcome.message} Nothing was charged; sign a new payment.`,
        outcome.reason,
        receipt(outcome.transaction ?? '', outcome.reason),
      )
    case 'pending':
      throw pending(outcome.transaction ?? '')
  }
}

/**
 * Records a settlement and returns the new record. Reads it from the journal only if another process recorded it first.
 */
async function settledRecord(
  payments: Payments,
  record: PaymentRecord,
  settlement: Settlement,
): Promise<PaymentRecord> {
  const { transaction } = settlement
  const settledAt = payments.now().getTime()
  if (await recordSettlement(payments, record, settlement, settledAt))
    return { ...record, state: 'settled', transaction, settledAt, updatedAt: settledAt }
  return (await payments.journal.find(record.key)) ?? record
}

/** The transaction that settled a payment. */
interface Settlement {
  readonly transaction: Hex
  /** Who sent the transaction, if it is none of ours. */
  readonly foreignSender?: Hex | undefined
  /** The gas that a transaction of ours used. */
  readonly gasUsed?: bigint | undefined
}

/** What records that a payment is settled. */
export interface SettlementRecorder extends Pick<Payments, 'log' | 'onSettled'> {
  readonly journal: Pick<Journal, 'settled'>
}

/**
 * Records in the journal that a payment is settled, logs the sale, one line per settled payment, and tells of it. Returns
 * false without doing so if another process has recorded it.
 * @param at milliseconds since the epoch; now if absent
 */
export async function recordSettlement(
  { journal, log, onSettled }: SettlementRecorder,
  record: PaymentRecord,
  { transaction, foreignSender, gasUsed }: Settlement,
  at?: number,
): Promise<boolean> {
  const { key, attempt, callId, operation, amount, payer, payerCode, network } = record
  // The gas of a payer without code is what the token uses, and may be that of a whole batch.
  const more = {
    ...(foreignSender === undefined ? {} : { cause: 'foreign' as const, reason: foreignNote(foreignSender) }),
    ...(payerCode === null || gasUsed === undefined ? {} : { gasUsed }),
  }
  if (!(await journal.settled(key, attempt, transaction, at, more))) return false
  const sale: SaleFields = { call: callId, operation, amount: String(amount), payer, network, transaction }
  log.info(sale, 'payment settled')
  onSettled?.(record, transaction)
  return true
}

function needsSignIn({ operation, record }: PurchaseParts): boolean {
  return operation.plan !== null && record.identifier === null
}

/** Records the final outcome of a payment whose answer has already left. */
async function recordLater(
  { payments, presented: { payment }, unpaidCalls }: PurchaseParts,
  record: PaymentRecord,
  later: Promise<Outcome> | undefined,
): Promise<void> {
  if (later === undefined) return
  const { journal, methods, inProgress } = payments
  const stopWatching = inProgress.watch(payment.key)
  try {
    const outcome = await later
    const isFinal = outcome.state === 'refused' || (outcome.state === 'settled' && !outcome.provisional)
    if (isFinal) inProgress.releaseHold(payment)
    if (outcome.state === 'settled' && !outcome.provisional) {
      // A reorganisation may have let a transaction of others overtake ours.
      if (outcome.isOwed) await oweForeignSettlement(journal, record, outcome.transaction, outcome.foreignSender)
      else await recordSettlement(payments, record, outcome)
      if (!outcome.isOwed) unpaidCalls.sold(record.payer)
    }
    if (outcome.state === 'refused') {
      if (isOfPayer(outcome, methodOf(methods, payment.network))) unpaidCalls.leftUnpaid(record.payer)
      await journal.refused(record.key, record.attempt, outcome)
    }
  } catch {
    // Recovery will find the payment open and record its outcome.
  } finally {
    stopWatching()
  }
}

/** A token is not given to a payment alone, because others can read the payment from the chain. */
const SIGN_IN =
  ' The purchase of a plan has no Idempotency-Key here, so the repeat has to sign in with the wallet that paid: without ' +
  'that it gets 402 sign_in_required, with the challenge of sign-in-with-x to sign.'

/**
 * The 503 that tells the client to repeat the same request with the same payment.
 * @param needsSignIn whether the payment alone will not be enough
 */
export function pendingError(receipt: Receipt, needsSignIn = false): SettlementError {
  return new SettlementError(
    'settlement_pending',
    `The payment was sent and is not confirmed yet. Repeat this request with the same payment; do not sign a new one.${needsSignIn ? SIGN_IN : ''}`,
    'settlement_pending',
    receipt,
  )
}

/** The 402 for a payment that a reorganisation has taken back: it buys nothing now. */
export function reversedError(receipt: Receipt): SettlementError {
  return new SettlementError(
    'settlement_failed',
    'A reorganisation of the chain has taken this payment back, so it buys nothing. Sign a new payment.',
    'invalid_transaction_state',
    receipt,
  )
}

/**
 * Handles an error thrown during a settlement. If the journal can release the payment, no intent was recorded and
 * nothing was sent. Otherwise the outcome is unknown: a write that failed may still have been stored, and a recorded
 * payment may still be sent.
 */
async function interrupted(parts: PurchaseParts, thrown: unknown, isSubmitted: boolean): Promise<ServiceError> {
  const { record, payments } = parts
  const { journal } = payments
  const isReleased =
    !isSubmitted && (await journal.released(record.key, record.attempt, reasonOf(thrown)).catch(() => false))
  if (!isSubmitted && thrown instanceof JournalError && (isReleased || thrown.wroteNothing))
    return notRecordedError(thrown)
  return isReleased
    ? new ServiceError('settler_unavailable', undefined, { cause: thrown })
    : unknownOutcome(parts, thrown)
}

const RECORD_RETRY_SECONDS = 2

/** The 503 of a payment that the journal could not record, so that it was certainly not sent. */
export function notRecordedError(cause: unknown): ServiceError {
  return new ServiceError('payment_not_recorded', undefined, {
    cause,
    headers: { 'retry-after': String(RECORD_RETRY_SECONDS) },
  })
}

/** The 503 of a payment that may have been sent, by this process or another one. */
function unknownOutcome(parts: PurchaseParts, cause: unknown): SettlementError {
  const { record, requirements, presented } = parts
  const { version } = presented.payment.envelope
  const receipt = receiptOf(record, requirements.network, version, '', 'settlement_pending')
  const error = pendingError(receipt, needsSignIn(parts))
  error.cause = cause
  return error
}

function reasonOf(error: unknown): string {
  if (error instanceof ServiceError) return `${error.code}: ${error.message}`.slice(0, 500)
  return error instanceof Error ? error.name : 'unknown'
}
