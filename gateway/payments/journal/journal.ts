/**
 * The journal: the durable record of every payment, from its reservation to its end. Types only; `openJournal` opens
 * one. The ledger, which accounting exports, is derived from the journal's events.
 */
import type { Hex } from '../../config/networks.ts'
import type { Commitment, Intent, Payment, PaymentKey, RefusedOutcome } from '../../methods/payment-method.ts'
import type { AnswerBody } from '../../plugin/answer-body.ts'
import type { Cause, CauseOf, Ending, PaymentState } from './payment-states.ts'

/** An answer, stored beside its payment so that a retry gets the same bytes. */
export interface StoredAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: AnswerBody
}

/** One payment: what was presented, and everything that has happened to it. */
export interface PaymentRecord extends Payment {
  readonly state: PaymentState
  /** 1, and one more each time a released payment is used again. */
  readonly attempt: number
  readonly fingerprint: string
  readonly operation: string
  /** "GET /v1/..." as called; a stored answer can be replayed after the route is gone. */
  readonly route: string
  readonly asset: Hex
  /** The x402 version the payer used. */
  readonly version: 1 | 2
  /** The catalog version that the price was taken from. */
  readonly priceVersion: string
  readonly callId: string
  /** The payer's own name for this purchase (payment-identifier, Idempotency-Key); dropped with the answer. */
  readonly identifier: string | null
  /** Digest of the address it was bought from; dropped with the answer. */
  readonly place: string | null
  /** Null before the product answered, after a release, and at the end of the answer's retention. */
  readonly answer: StoredAnswer | null
  /** The intent that was written before the settlement was sent. */
  readonly intent: Intent | null
  /** Hash of the settlement. */
  readonly transaction: Hex | null
  /** Why it was released, reversed or is owed, or who else settled it: for people. */
  readonly reason: string | null
  /** Why it is settled or owed, if that is unusual. */
  readonly cause: Cause | null
  /** How its last debt ended; null if none has. */
  readonly ending: Ending | null
  /** The keccak-256 of the code of the payer's account; null if it had none. */
  readonly payerCode: Hex | null
  /** When a transaction of ours that was to settle it failed, in milliseconds since the epoch. It is never sent again. */
  readonly revertedAt: number | null
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly updatedAt: number
  readonly settledAt: number | null
  /** When its debt ended; null while the debt is open. */
  readonly repaidAt: number | null
  /** When the whole answer was first sent. */
  readonly deliveredAt: number | null
}

export type Reservation = Omit<
  PaymentRecord,
  | 'state'
  | 'attempt'
  | 'answer'
  | 'intent'
  | 'transaction'
  | 'reason'
  | 'cause'
  | 'ending'
  | 'payerCode'
  | 'revertedAt'
  | 'createdAt'
  | 'updatedAt'
  | 'settledAt'
  | 'repaidAt'
  | 'deliveredAt'
> & {
  readonly payerCode?: Hex | null
  /** We pay the gas of its settlement, so the limits of its payer count. */
  readonly paysGas?: boolean
}

/** The state of the payment of a call. */
export type CallPayment = Pick<PaymentRecord, 'callId' | 'state' | 'expiresAt'>

/** The amount that an unsettled payment holds on its payer's balance, until `expiresAt` at most. */
export type HeldAmount = Commitment & Pick<Payment, 'expiresAt'>

export interface Reserved {
  readonly reserved: boolean
  readonly record: PaymentRecord
  /**
   * The payer's other payments on this network that were reserved before and are not settled, by any process. Of two
   * reservations of one payer, exactly one is ahead of the other. Empty if this one was not made.
   */
  readonly ahead: readonly HeldAmount[]
}

/**
 * One row per payment, with append-only events. Every method is durable when it resolves. A move names its attempt and
 * resolves to false if the row is not in a state that allows the move (see payment-states.ts).
 */
export interface Journal {
  /** Identifies this opening of the journal: the owner of the rows it moves. */
  readonly owner: string
  find(key: PaymentKey): Promise<PaymentRecord | null>
  /** The payments that these calls were the last to reserve: one for each, or none if another call has reserved it since. */
  ofCalls(callIds: readonly string[]): Promise<readonly CallPayment[]>
  /** The unreleased payment that this payer made under this identifier. */
  findByIdentifier(payer: Hex, identifier: string): Promise<PaymentRecord | null>
  /**
   * Inserts a row, or takes over a released row as a new attempt. `reserved: false` returns the row in the way: this
   * payment's own, or another one of the same payer with the same identifier. Throws PayerLimited if the payer has too many
   * unsettled payments, has to wait because others failed, or if this one has failed.
   */
  reserve(reservation: Reservation): Promise<Reserved>
  /** Stores the answer of a reserved payment that is not sent. */
  answered(key: PaymentKey, attempt: number, answer: StoredAnswer): Promise<boolean>
  /**
   * Records what is about to be sent, for an answered payment, or for a reserved one together with its answer. Must
   * resolve before anything is sent.
   * @param options.at milliseconds since the epoch; now if absent
   */
  submitted(
    key: PaymentKey,
    attempt: number,
    intent: Intent,
    options?: { readonly at?: number; readonly answer?: StoredAnswer },
  ): Promise<boolean>
  /**
   * Records that the money has arrived.
   * @param at milliseconds since the epoch; now if absent
   * @param more.cause what is unusual about it, and `more.reason` the same for people
   * @param more.gasUsed what it cost us, if the payer's account has code
   */
  settled(
    key: PaymentKey,
    attempt: number,
    transaction: Hex,
    at?: number,
    more?: { readonly cause?: CauseOf<'settled'>; readonly reason?: string; readonly gasUsed?: bigint },
  ): Promise<boolean>
  /** Records that the whole answer was sent. Only the first call counts, and only for a submitted or settled payment. */
  delivered(key: PaymentKey): Promise<void>
  /** Releases a reserved or answered payment. False after `submitted`: then only the settler knows the outcome. */
  released(key: PaymentKey, attempt: number, reason: string): Promise<boolean>
  /**
   * Takes over a submitted payment before its outcome is looked up or it is sent again. From then on its former owner
   * cannot release it as never sent. False if the payment is no longer submitted.
   */
  claim(key: PaymentKey, attempt: number): Promise<boolean>
  /** Releases an unsettled payment, because the settler proved that nothing was transferred or can be. */
  refused(key: PaymentKey, attempt: number, outcome: RefusedOutcome): Promise<boolean>
  /** Settles a released payment, without an answer: somebody else's transaction transferred the money after all. */
  settledLate(key: PaymentKey, attempt: number, transaction: Hex, reason: string): Promise<boolean>
  /**
   * Records that a reorganisation has taken a settled payment back. From then on, the buyer owes it to us; if it was owed to
   * the buyer, that depends on how the debt ended.
   */
  reversed(key: PaymentKey, attempt: number, reason: string): Promise<boolean>
  /**
   * Settles a submitted or reversed payment without its answer, because a transaction of others has moved the money and buys
   * nothing here. Its cause is `foreign_owed`. If the process stops before it is `owed`, recovery makes it so.
   */
  settledByOthers(key: PaymentKey, attempt: number, transaction: Hex, reason: string): Promise<boolean>
  /** Settles a reversed payment: its transfer is in a block again. */
  settledAgain(key: PaymentKey, attempt: number, transaction: Hex): Promise<boolean>
  /**
   * Payments whose transfer a reorganisation may still remove, or bring back, and that are to be looked at by this moment
   * (ms): the longest overdue first. A payment is due as soon as it is settled or reversed.
   */
  dueForLook(at: number, limit: number): Promise<readonly PaymentRecord[]>
  /** Records looks at payments. Nothing else about a payment changes. */
  lookAgain(looks: readonly Look[]): Promise<void>
  /**
   * Payments that were reversed at or after this moment (ms) and still are, newest first, without their answers: those whose
   * buyers owe us money.
   */
  reversals(since: number, limit: number): Promise<readonly PaymentRecord[]>
  /** Turns a submitted or settled payment into a debt, because its answer can no longer be delivered. */
  owed(key: PaymentKey, attempt: number, reason: string, cause?: CauseOf<'owed'> | null): Promise<boolean>
  /**
   * Ends a debt: it was repaid, or withdrawn because the chain took the payment back. `note` is for people. The state stays
   * `owed`. False if it is no debt, or has ended before. A debt that may have been repaid before stays unclear when it is
   * withdrawn.
   */
  repaid(key: PaymentKey, note: string, ending?: Exclude<Ending, 'unknown'>): Promise<boolean>
  /** Payments of which nothing says whether their debt was repaid or withdrawn, oldest first, without their answers. */
  unclear(): Promise<readonly PaymentRecord[]>
  /** Says how the debt of an unclear payment ended. It is looked at next. False if the payment is not unclear. */
  decided(key: PaymentKey, ending: Exclude<Ending, 'unknown'>): Promise<boolean>
  /**
   * Unfinished rows, oldest first: reserved, answered, submitted, and settled without ever having had an answer. Rows
   * of answered payments come without their answers.
   */
  openPayments(): Promise<readonly OpenPayment[]>
  /** Rows that match the filter, newest first. */
  list(filter: PaymentFilter): Promise<readonly PaymentRecord[]>
  /** Payments that are settled or owed, in the order of when they settled. */
  settlements(page: SettlementPage): Promise<readonly Settlement[]>
  /** Owed and not repaid, oldest first. */
  debts(): Promise<readonly PaymentRecord[]>
  /** Owners known to be running, this one included. */
  liveOwners(): Promise<ReadonlySet<string>>
  /** Number of payments by state. */
  counts(): Promise<Readonly<Record<PaymentState, number>>>
  /**
   * Sums of payments that were settled at or after this moment (ms) and are settled, owed or reversed, by UTC day, operation,
   * network and state. `own` payers are summed separately.
   */
  dailySums(settledSince: number, own: readonly string[]): Promise<readonly PaymentSum[]>
  /**
   * The `limit` wallets that paid most for each operation since this moment (ms), by amount, and how many paid for it. Only
   * settled payments count.
   */
  topBuyers(settledSince: number, limit: number): Promise<readonly Buyer[]>
  events(key: PaymentKey): Promise<readonly JournalEvent[]>
  /** Whether it can be written, as the last write has shown. While it cannot, it is tried every second. */
  health(): JournalHealth
  /** Sales, debts, repayments and reversals in the order in which they were recorded. */
  ledgerEntries(window: EntryWindow): Promise<readonly LedgerEntry[]>
  /** Sums of a window's ledger entries, by network and kind. `own` payers are summed separately. */
  ledgerTotals(window: Pick<EntryWindow, 'from' | 'before'>, own: readonly string[]): Promise<readonly EntryTotal[]>
  /** Drops the stored answers of payments settled before this moment (ms) and returns their number. The rows stay. */
  forgetAnswers(settledBefore: number): Promise<number>
  /** Counts the answers of payments that were not sent because their callers left: of this payer, and of all. */
  keptAnswers(payer: Hex): Promise<{ readonly ofPayer: KeptAnswers; readonly all: KeptAnswers }>
  /** Counts that the answer of a payment is produced again. False if that has happened `limit` times. */
  refetched(key: PaymentKey, limit: number): Promise<boolean>
  /** Finishes all pending writes, then closes the file or the connections. */
  close(): Promise<void>
}

/** Whether payments can be recorded. */
export interface JournalHealth {
  readonly ready: boolean
  /** Why not, for people. */
  readonly reason?: string
}

/** A write of the journal that failed because of its disk, its file or its server. */
export class JournalError extends Error {
  /** True if certainly nothing was written. Otherwise the write may be there, and may be seen by others or after a crash. */
  readonly wroteNothing: boolean

  constructor(reason: string, wroteNothing: boolean, cause: unknown) {
    super(`the journal cannot be written: ${reason}`, { cause })
    this.wroteNothing = wroteNothing
  }
}

/**
 * Why a payment was not reserved.
 * - `reverted`: its transaction has failed before.
 * - `waiting`: the payer has as many unsettled payments as it may have.
 * - `cooling`: settlements of the payer, or of payers with the same code, have failed. It ends at `until`, in
 *   milliseconds since the epoch.
 */
export type PayerLimit =
  { readonly reason: 'reverted' | 'waiting' } | { readonly reason: 'cooling'; readonly until: number }

/** A payment was not reserved because of its payer. */
export class PayerLimited extends Error {
  readonly limit: PayerLimit
  constructor(limit: PayerLimit) {
    super(`the payment is not reserved: ${limit.reason}`)
    this.name = 'PayerLimited'
    this.limit = limit
  }
}

/** Stored answers, and how many bytes they have together. */
export interface KeptAnswers {
  readonly answers: number
  readonly bytes: number
}

/** The record of a look at a settled or reversed payment. */
export interface Look {
  readonly key: PaymentKey
  /** When it is looked at next, in milliseconds since the epoch; null: never again. */
  readonly at: number | null
  /** The transaction that makes the transfer now, if it is another one than before. */
  readonly transaction?: Hex
}

/** An unfinished row, with the owner that last moved it. */
export interface OpenPayment extends PaymentRecord {
  readonly owner: string
}

export interface PaymentFilter {
  readonly states?: readonly PaymentState[]
  /** Operation ids. */
  readonly operations?: readonly string[]
  /** Address; case does not matter. */
  readonly payer?: string
  /** Hash of the settlement; case does not matter. */
  readonly transaction?: string
  /** The id of the call that the payment was sent with. */
  readonly call?: string
  /** CAIP-2. */
  readonly network?: string
  /** Only payments that are older than this one. None if it is unknown. */
  readonly before?: PaymentKey
  /** Does not read the bodies of stored answers. */
  readonly withoutAnswers?: boolean
  readonly limit: number
}

/** Which settlements are wanted. */
export interface SettlementPage {
  /** The first of them: from this moment (ms) on, or after this one. */
  readonly from: number | Settlement
  readonly limit: number
}

/** The facts that find the transfer of a payment. */
export interface Settlement extends Pick<
  PaymentRecord,
  'key' | 'network' | 'payer' | 'payTo' | 'amount' | 'transaction'
> {
  /** Orders payments that settled at the same moment. */
  readonly id: number
  /** Milliseconds since the epoch. */
  readonly settledAt: number
}

/** What one wallet has paid for one operation. */
export interface Buyer {
  readonly operation: string
  readonly payer: string
  readonly payments: number
  /** Atomic units. */
  readonly amount: bigint
  /** How many wallets paid for the operation. */
  readonly buyers: number
}

export interface PaymentSum {
  /** Days since the epoch, UTC. */
  readonly day: number
  readonly operation: string
  readonly network: string
  readonly state: PaymentState
  /** Paid by the operator's own wallets. */
  readonly isOwn: boolean
  readonly count: number
  /** Number of different payers. */
  readonly payers: number
  /** Atomic units. */
  readonly amount: bigint
}

export interface JournalEvent {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly attempt: number
  readonly state: PaymentState
  /** The cause of the state, or how the debt has ended. */
  readonly cause: Cause | Ending | null
  /** For people. */
  readonly note: string | null
}

/**
 * A sale: a payment was settled. A debt: its answer cannot be delivered. A repayment: the debt was repaid. A reversal: a
 * reorganisation has taken a sale back; if the payment is mined again, it is a sale once more.
 */
export type EntryKind = 'sale' | 'debt' | 'repayment' | 'reversal'

/** One line of the ledger: an event that moved money. Events are never edited, so a month that is over never changes. */
export interface LedgerEntry {
  /** Id of the event. */
  readonly id: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly kind: EntryKind
  /** Why it is owed or was reversed, or how it was repaid; null for a sale. */
  readonly note: string | null
  /** The payment, in fields that do not change once it is settled. */
  readonly payment: Pick<
    PaymentRecord,
    | 'key'
    | 'network'
    | 'asset'
    | 'payer'
    | 'payTo'
    | 'amount'
    | 'operation'
    | 'route'
    | 'transaction'
    | 'priceVersion'
    | 'callId'
  >
}

/** The sum of ledger entries of one network and kind. */
export interface EntryTotal {
  readonly network: string
  readonly kind: EntryKind
  /** Paid by the operator's own wallets. */
  readonly isOwn: boolean
  readonly count: number
  /** Atomic units. */
  readonly amount: bigint
}

/** Ledger entries with `from` ≤ at < `before` (ms), in order. `after` is the last entry already read. */
export interface EntryWindow {
  readonly from: number
  readonly before: number
  readonly after?: Pick<LedgerEntry, 'at' | 'id'>
  readonly limit: number
}
