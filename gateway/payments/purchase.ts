/**
 * One reserved payment on its way to settled. The answer is stored, the intent is written, the payment is sent, and only
 * then does the answer leave. After a crash at any point the journal still says what has to be done.
 */
import { ServiceError } from '../errors.ts'
import type { Hex, Network } from '../config/networks.ts'
import type { DecodedPayment, Outcome, PaymentMethod, Settler, Wait } from '../methods/payment-method.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { PaymentRequirements } from '../x402/payment-requirements.ts'
import type { Receipt } from '../x402/settlement-response.ts'
import type { InFlightPayment, InFlightPayments } from './in-flight.ts'
import type { Journal, PaymentRecord, StoredAnswer } from './journal/journal.ts'

/** An answer with the receipt of the payment that bought it. */
export interface PaidAnswer extends StoredAnswer {
  /** Absent if nothing was charged: the product answered outside 2xx or with an empty body. */
  readonly receipt?: Receipt
  /** The journal's record of the payment, as it is when the answer leaves. Set with a successful receipt. */
  readonly record?: PaymentRecord
  /** The payment bought a stream, of which no copy is stored: it has to be fetched again. */
  readonly mustRefetch?: true
}

/** An answer to be paid for. A stream has no body to store; an empty one is stored for it. */
export type Deliverable = StoredAnswer & { readonly stream?: object }

export interface Purchase {
  readonly payer: PaymentRecord['payer']
  /** Atomic units. */
  readonly amount: bigint
  /** When the payment was reserved. */
  readonly reservedAt: Date
  /** Stores the answer, settles, and returns the answer with its receipt. Throws SettlementError if it cannot leave. */
  settle(answer: Deliverable): Promise<PaidAnswer>
  /** Releases the reservation. Does nothing once the answer is stored. */
  release(error: unknown): Promise<void>
}

/** The 402 or 503 of a settlement, with the receipt that says how far it came. */
export class SettlementError extends ServiceError {
  readonly receipt: Receipt

  constructor(code: 'settlement_failed' | 'settlement_pending', message: string, reason: string, receipt: Receipt) {
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
  readonly journal: Journal
  readonly log: Logger
  readonly settler: Settler
  readonly method: PaymentMethod
  readonly record: PaymentRecord
  readonly payment: DecodedPayment
  readonly requirements: PaymentRequirements
  readonly wait: Wait
  readonly inFlight: InFlightPayments<PaidAnswer>
  /** This payment's entry in `inFlight`. */
  readonly work: InFlightPayment<PaidAnswer>
  readonly now: () => Date
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal
}

/** Creates the purchase of a reserved payment. */
export function createPurchase(parts: PurchaseParts): Purchase {
  const { journal, record, work, signal } = parts
  const { key, attempt } = record
  let isStored = false

  const release = async (error: unknown): Promise<void> => {
    if (isStored) return
    try {
      await journal.released(key, attempt, reasonOf(error))
    } finally {
      // A caller that hung up leaves nothing to share: a waiting duplicate tries for itself.
      work.finish(signal.aborted ? null : { error })
    }
  }

  const settle = async (answer: Deliverable): Promise<PaidAnswer> => {
    const isEmpty = answer.body.length === 0 && !answer.stream
    if (answer.status < 200 || answer.status > 299 || isEmpty) {
      await release(new ServiceError('product_failed', `the product answered ${answer.status}; not charged`))
      return answer
    }
    if (signal.aborted) throw new ServiceError('internal', 'the caller left before the answer was stored')
    if (!(await journal.answered(key, attempt, answer))) throw new ServiceError('internal', 'the reservation was lost')
    isStored = true
    if (signal.aborted) {
      work.finish(null)
      throw new ServiceError('internal', 'the caller left before the payment was sent')
    }
    return settleStored(parts, answer)
  }

  return { payer: record.payer, amount: record.amount, reservedAt: new Date(record.updatedAt), settle, release }
}

/** A transaction needs a block to get into. */
const BLOCK_SECONDS = 2

/** Settles a payment whose answer is stored, and finishes its work whatever happens. */
export async function settleStored(parts: PurchaseParts, answer: StoredAnswer): Promise<PaidAnswer> {
  const { journal, settler, method, record, payment, requirements, wait, now } = parts
  let submittedAt: number | null = null
  try {
    // A slow product may leave too little of a short signature. The transaction would fail, at our expense.
    const isExpired = Number(payment.expiresAt) < Math.floor(now().getTime() / 1000) + BLOCK_SECONDS
    const outcome: Outcome = isExpired
      ? { state: 'refused', reason: method.expiredReason, message: EXPIRED }
      : await settler.settle(payment, requirements, {
          wait,
          async record(intent) {
            const at = now().getTime()
            const isSubmitted = await journal.submitted(record.key, record.attempt, intent, at)
            if (isSubmitted) submittedAt = at
            return isSubmitted
          },
        })
    return await finishSettlement(parts, { ...record, updatedAt: submittedAt ?? record.updatedAt }, outcome, answer)
  } catch (thrown) {
    const error = thrown instanceof SettlementError ? thrown : await interrupted(parts, thrown, submittedAt !== null)
    parts.work.finish({ error }, { keepHold: mayMoveLater(error) })
    throw error
  }
}

const EXPIRED = 'The payment ended while its answer was made. Let a new one live longer.'

/** Whether the money may still move although the caller got an error: then it stays held on the payer's balance. */
export function mayMoveLater(error: unknown): boolean {
  return error instanceof SettlementError && error.code === 'settlement_pending'
}

/** Records what became of a settlement and returns the answer to all who wait for it. Throws what the caller is told. */
export async function finishSettlement(
  parts: PurchaseParts,
  record: PaymentRecord,
  outcome: Outcome,
  answer: StoredAnswer,
): Promise<PaidAnswer> {
  const { journal, payment, requirements, wait, work } = parts
  const receipt = (transaction: Receipt['transaction'], reason?: string): Receipt =>
    receiptOf(record, requirements.network, payment.envelope.version, transaction, reason)
  switch (outcome.state) {
    case 'settled': {
      const { transaction, provisional = false } = outcome
      if (provisional && wait === 'confirmed') throw pendingError(receipt(transaction, 'settlement_pending'))
      const current = provisional
        ? ({ ...record, state: 'submitted', answer, transaction } as const)
        : await settledRecord(parts, { ...record, answer }, transaction)
      const paid = { ...answer, receipt: receipt(transaction), record: current }
      work.finish({ result: paid }, { keepHold: provisional })
      if (provisional) void recordLater(parts, record, outcome.later)
      return paid
    }
    case 'refused':
      // The journal refuses if another process has taken the payment over: it may be sending the payment.
      if (!(await journal.refused(record.key, record.attempt, outcome)) && outcome.unsent)
        throw pendingError(receipt('', 'settlement_pending'))
      throw new SettlementError(
        'settlement_failed',
        `${outcome.message} Nothing was charged; sign a new payment.`,
        outcome.reason,
        receipt(outcome.transaction ?? '', outcome.reason),
      )
    case 'pending':
      throw pendingError(receipt(outcome.transaction ?? '', 'settlement_pending'))
  }
}

/** Records a settlement and returns the record as it is then. Reads it only if another process recorded it first. */
async function settledRecord(
  { journal, log, now }: PurchaseParts,
  record: PaymentRecord,
  transaction: Hex,
): Promise<PaymentRecord> {
  const settledAt = now().getTime()
  if (await recordSettlement(journal, log, record, transaction, settledAt))
    return { ...record, state: 'settled', transaction, settledAt, updatedAt: settledAt }
  return (await journal.find(record.key)) ?? record
}

/**
 * Records in the journal that a payment is settled, and logs the one line that stands for a sale. Returns false without
 * logging if another process has recorded it.
 * @param at milliseconds since the epoch; now if absent
 */
export async function recordSettlement(
  journal: Pick<Journal, 'settled'>,
  log: Logger,
  record: PaymentRecord,
  transaction: Hex,
  at?: number,
): Promise<boolean> {
  const { key, attempt, callId, operation, amount, payer, network } = record
  if (!(await journal.settled(key, attempt, transaction, at))) return false
  log.info({ call: callId, operation, amount: String(amount), payer, network, transaction }, 'payment settled')
  return true
}

/** Records the final outcome of a payment whose answer has left already. */
async function recordLater(
  { journal, log, inFlight, payment }: PurchaseParts,
  record: PaymentRecord,
  later: Promise<Outcome> | undefined,
): Promise<void> {
  const outcome = await later
  const isFinal = outcome?.state === 'refused' || (outcome?.state === 'settled' && !outcome.provisional)
  if (isFinal) inFlight.releaseHold(payment)
  try {
    if (outcome?.state === 'settled' && !outcome.provisional)
      await recordSettlement(journal, log, record, outcome.transaction)
    if (outcome?.state === 'refused') await journal.refused(record.key, record.attempt, outcome)
  } catch {
    // Recovery finds the payment open and records it.
  }
}

/** The 503 that asks for the same request again, with the same payment. */
export function pendingError(receipt: Receipt): SettlementError {
  return new SettlementError(
    'settlement_pending',
    'The payment was sent and is not confirmed yet. Repeat this very request with the same payment; do not sign a new one.',
    'settlement_pending',
    receipt,
  )
}

/**
 * The settler threw. If the payment can be released, no intent was recorded and so nothing was sent. Otherwise the
 * outcome is open: a write that was reported as failed may have been done, and what is recorded may still be sent.
 */
async function interrupted(parts: PurchaseParts, thrown: unknown, isSubmitted: boolean): Promise<ServiceError> {
  const { journal, record, payment, requirements } = parts
  const isReleased =
    !isSubmitted && (await journal.released(record.key, record.attempt, reasonOf(thrown)).catch(() => false))
  if (isReleased) return new ServiceError('settler_unavailable', undefined, { cause: thrown })
  const error = pendingError(
    receiptOf(record, requirements.network, payment.envelope.version, '', 'settlement_pending'),
  )
  error.cause = thrown
  return error
}

function reasonOf(error: unknown): string {
  if (error instanceof ServiceError) return `${error.code}: ${error.message}`.slice(0, 500)
  return error instanceof Error ? error.name : 'unknown'
}
