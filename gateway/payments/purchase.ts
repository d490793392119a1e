/**
 * One reserved payment on its way to settled: the answer is stored, the intent is written, the payment is sent, and
 * only then does the answer leave.
 */
import { ServiceError } from '../errors.ts'
import type { Flight } from './in-flight.ts'
import type { Journal, PaymentRecord, StoredAnswer } from './journal/journal.ts'
import type { DecodedPayment, PaymentMethod, Outcome, Settler, Wait } from '../methods/payment-method.ts'
import type { PaymentRequirements } from '../x402/payment-requirements.ts'
import type { Hex, Network } from '../config/networks.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Receipt } from '../x402/settlement-response.ts'

/** An answer with the receipt of the payment that bought it. */
export interface PaidAnswer extends StoredAnswer {
  /** Absent where nothing was charged: the product answered outside 2xx or with no body. */
  readonly receipt?: Receipt
  /** The payment bought a stream, of which no copy is kept: it is to be fetched again. */
  readonly again?: true
}

/** An answer to be paid for. A stream has no body to keep: an empty one is stored for it. */
export type Deliverable = StoredAnswer & { readonly stream?: object }

export interface Purchase {
  readonly payer: PaymentRecord['payer']
  readonly amount: bigint
  /** When the payment was taken into work. */
  readonly reservedAt: Date
  /** Stores, settles, and returns the answer with its receipt. Throws SettlementError where it cannot be delivered. */
  settle(answer: Deliverable): Promise<PaidAnswer>
  /** Gives the reservation back. Does nothing once the answer is stored. */
  release(error: unknown): Promise<void>
}

/** 402 or 503 of a settlement, with the receipt that says how far it came. */
export class SettlementError extends ServiceError {
  readonly receipt: Receipt

  constructor(code: 'settlement_failed' | 'settlement_pending', message: string, reason: string, receipt: Receipt) {
    const headers = code === 'settlement_pending' ? { 'retry-after': '2' } : {}
    super(code, message, { reason, headers, fields: { transaction: receipt.transaction } })
    this.receipt = receipt
  }
}

/** The receipt of a record whose settlement is `transaction`. */
export function receiptOf(
  record: Pick<PaymentRecord, 'payer' | 'amount'>,
  network: Network,
  version: 1 | 2,
  transaction: Receipt['transaction'],
  errorReason?: string,
): Receipt {
  const { payer, amount } = record
  const receipt = { success: errorReason === undefined, transaction, network, payer, amount, version }
  return errorReason === undefined ? receipt : { ...receipt, errorReason }
}

export interface PurchaseParts {
  readonly journal: Journal
  readonly log: Logger
  readonly settler: Settler
  readonly record: PaymentRecord
  readonly payment: DecodedPayment
  readonly method: PaymentMethod
  readonly requirements: PaymentRequirements
  readonly wait: Wait
  readonly flight: Flight<PaidAnswer>
  /** Seconds since the epoch. */
  readonly nowSeconds: () => number
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal
}

export function createPurchase(parts: PurchaseParts): Purchase {
  const { journal, record, flight, signal } = parts
  const { key, attempt } = record
  let stored = false

  const release = async (error: unknown): Promise<void> => {
    if (stored) return
    try {
      await journal.released(key, attempt, reasonOf(error))
    } finally {
      // A caller that hung up leaves nothing to share: a twin still waiting tries for itself.
      flight.land(signal.aborted ? null : { error })
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
    stored = true
    if (signal.aborted) {
      flight.land(null)
      throw new ServiceError('internal', 'the caller left before the payment was sent')
    }
    return send(parts, answer)
  }

  return { payer: record.payer, amount: record.amount, reservedAt: new Date(record.updatedAt), settle, release }
}

/** A transaction needs a block. */
const BLOCK_SECONDS = 2
/** What a slow product leaves of a short signature would fail on the chain, at our expense. */
function expired({ expiredReason }: PaymentMethod): Outcome {
  const message = 'The payment ended while its answer was made. Let a new one live longer.'
  return { state: 'refused', reason: expiredReason, message }
}

/** Settles a stored answer and lands the flight, whatever happens. */
export async function send(parts: PurchaseParts, answer: StoredAnswer): Promise<PaidAnswer> {
  const { journal, settler, method, record, payment, requirements, wait, flight, nowSeconds } = parts
  let submitted = false
  try {
    const isOver = Number(payment.expiresAt) < nowSeconds() + BLOCK_SECONDS
    const outcome = isOver
      ? expired(method)
      : await settler.settle(payment, requirements, {
          wait,
          record: async (intent) => (submitted = await journal.submitted(record.key, record.attempt, intent)),
        })
    const paid = await conclude(parts, outcome, answer)
    flight.land({ result: paid })
    return paid
  } catch (thrown) {
    const error = thrown instanceof SettlementError ? thrown : await interrupted(parts, thrown, submitted)
    flight.land({ error })
    throw error
  }
}

/** Writes what became of the settlement and returns the answer, or throws what the caller is to be told. */
export async function conclude(
  parts: Pick<PurchaseParts, 'journal' | 'log' | 'record' | 'payment' | 'requirements' | 'wait'>,
  outcome: Outcome,
  answer: StoredAnswer,
): Promise<PaidAnswer> {
  const { journal, log, record, payment, requirements } = parts
  const { key, attempt } = record
  const receipt = (transaction: Receipt['transaction'], reason?: string): Receipt =>
    receiptOf(record, requirements.network, payment.envelope.version, transaction, reason)
  switch (outcome.state) {
    case 'settled':
      if (!outcome.provisional) await recordSettlement(journal, log, record, outcome.transaction)
      else if (parts.wait === 'confirmed') throw pending(receipt(outcome.transaction, 'settlement_pending'))
      else void bookLater(parts, outcome.later)
      return { ...answer, receipt: receipt(outcome.transaction) }
    case 'refused':
      // Refused by the ledger: somebody else has taken the payment over and may be sending it.
      if (!(await journal.refused(key, attempt, outcome)) && outcome.unsent)
        throw pending(receipt('', 'settlement_pending'))
      throw new SettlementError(
        'settlement_failed',
        `${outcome.message} Nothing was charged; sign a new payment.`,
        outcome.reason,
        receipt(outcome.transaction ?? '', outcome.reason),
      )
    case 'pending':
      throw pending(receipt(outcome.transaction ?? '', 'settlement_pending'))
  }
}

/**
 * Records in the journal that a payment is settled, and logs the one line that stands for a sale. Returns false without
 * logging if another process has recorded it.
 */
export async function recordSettlement(
  journal: Pick<Journal, 'settled'>,
  log: Logger,
  record: PaymentRecord,
  transaction: Hex,
): Promise<boolean> {
  const { key, attempt, callId, operation, amount, payer, network } = record
  if (!(await journal.settled(key, attempt, transaction))) return false
  log.info({ call: callId, operation, amount: String(amount), payer, network, transaction }, 'payment settled')
  return true
}

/** Books what a payment becomes whose answer has gone. */
async function bookLater(
  { journal, log, record }: Pick<PurchaseParts, 'journal' | 'log' | 'record'>,
  later: Promise<Outcome> | undefined,
): Promise<void> {
  const outcome = await later
  try {
    if (outcome?.state === 'settled' && !outcome.provisional)
      await recordSettlement(journal, log, record, outcome.transaction)
    if (outcome?.state === 'refused') await journal.refused(record.key, record.attempt, outcome)
  } catch {
    // The reconciler finds it open.
  }
}

export function pending(receipt: Receipt): SettlementError {
  return new SettlementError(
    'settlement_pending',
    'The payment was sent and is not confirmed yet. Repeat this very request with the same payment; do not sign a new one.',
    'settlement_pending',
    receipt,
  )
}

/**
 * The settler threw. Where the payment can be given back nothing was recorded, so nothing was sent. Else the outcome is
 * open: a write that was reported as failed may have been done, and what is recorded may yet be sent.
 */
async function interrupted(parts: PurchaseParts, thrown: unknown, submitted: boolean): Promise<ServiceError> {
  const { journal, record, payment, requirements } = parts
  const released =
    !submitted && (await journal.released(record.key, record.attempt, reasonOf(thrown)).catch(() => false))
  if (released) return new ServiceError('settler_unavailable', undefined, { cause: thrown })
  const error = pending(receiptOf(record, requirements.network, payment.envelope.version, '', 'settlement_pending'))
  error.cause = thrown
  return error
}

function reasonOf(error: unknown): string {
  if (error instanceof ServiceError) return `${error.code}: ${error.message}`.slice(0, 500)
  return error instanceof Error ? error.name : 'unknown'
}
