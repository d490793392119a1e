/** The journal: the durable record of every payment, from its reservation to its end. Types only. */
import type { Hex } from '../../config/networks.ts'
import type { Intent, PaymentKey, RefusedOutcome } from '../../methods/payment-method.ts'

export type PaymentState = 'reserved' | 'answered' | 'submitted' | 'settled' | 'released' | 'owed'

/** An answer as it was, or will be, sent: kept beside the payment so that a retry gets the same bytes. */
export interface StoredAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export interface PaymentRecord {
  readonly key: PaymentKey
  readonly state: PaymentState
  /** Counts up each time a released payment is tried again. */
  readonly attempt: number
  readonly fingerprint: string
  readonly operation: string
  /** "GET /v1/..." as called, for recall after the route is gone. */
  readonly route: string
  readonly network: string
  readonly asset: Hex
  readonly payer: Hex
  readonly payTo: Hex
  readonly amount: bigint
  readonly nonce: Hex
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly signature: Hex
  readonly version: 1 | 2
  /** Catalog version the price was taken from. */
  readonly priceVersion: string
  readonly callId: string
  /** The payer's own name for this purchase (payment-identifier, Idempotency-Key), while its answer is kept. */
  readonly identifier: string | null
  /** Digest of where it was bought from, while its answer is kept. */
  readonly place: string | null
  readonly answer: StoredAnswer | null
  readonly intent: Intent | null
  readonly transaction: Hex | null
  readonly reason: string | null
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly updatedAt: number
  readonly settledAt: number | null
  /** When its answer had left in full, the first time. */
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
  | 'createdAt'
  | 'updatedAt'
  | 'settledAt'
  | 'deliveredAt'
>

/**
 * The ledger: one row per payment, append-only events behind it. Every method is durable when it resolves. A change
 * names the attempt it belongs to and is refused (false) when the row is not in a state that allows it, so two
 * processes can never both move it.
 */
export interface Journal {
  /** This opening of the ledger: the owner of the rows it moves. */
  readonly owner: string
  find(key: PaymentKey): Promise<PaymentRecord | null>
  /** The payment, not released, that this payer calls by this identifier. */
  identified(payer: Hex, identifier: string): Promise<PaymentRecord | null>
  /**
   * Inserts, or takes over a released row as a new attempt. `reserved: false` returns the row that is in the way: this
   * payment's own, or another one of the same payer with the same identifier.
   */
  reserve(reservation: Reservation): Promise<{ readonly reserved: boolean; readonly record: PaymentRecord }>
  answered(key: PaymentKey, attempt: number, answer: StoredAnswer): Promise<boolean>
  /** Written before anything is sent. */
  submitted(key: PaymentKey, attempt: number, intent: Intent): Promise<boolean>
  settled(key: PaymentKey, attempt: number, transaction: Hex): Promise<boolean>
  /** Notes that the answer has left in full. The first time counts; of a payment that is not paid nothing is noted. */
  delivered(key: PaymentKey): Promise<void>
  /** Gives back a reserved or answered payment. Refused once it was submitted: then only the settler can say. */
  released(key: PaymentKey, attempt: number, reason: string): Promise<boolean>
  /**
   * Takes over a submitted payment before it is asked about or sent again. False: it is submitted no more. From now on
   * its former owner cannot give it back as never sent.
   */
  claim(key: PaymentKey, attempt: number): Promise<boolean>
  /** Gives back an answered or submitted payment, because the settler proved that nothing moved and nothing can. */
  refused(key: PaymentKey, attempt: number, outcome: RefusedOutcome): Promise<boolean>
  /** A payment given back whose money came all the same, by somebody else's transaction: settled, without an answer. */
  late(key: PaymentKey, attempt: number, transaction: Hex): Promise<boolean>
  /** A submitted or settled payment whose answer cannot be given any more becomes a debt. */
  owed(key: PaymentKey, attempt: number, reason: string): Promise<boolean>
  /** Strikes an owed payment from the debts; `note` says how it was repaid. The row stays owed. */
  repaid(key: PaymentKey, note: string): Promise<boolean>
  /** Rows not finished, oldest first: reserved, answered, submitted, and settled without ever having had an answer. */
  open(): Promise<readonly OpenPayment[]>
  /** Rows newest first; `operations` are ids, `payer` is compared without regard to case. At most `limit`. */
  list(filter: PaymentFilter): Promise<readonly PaymentRecord[]>
  /** Owed and not repaid, oldest first. */
  debts(): Promise<readonly PaymentRecord[]>
  /** Processes known to be at work on this ledger, this one included. */
  living(): Promise<ReadonlySet<string>>
  /** Counts by state, for status and facts. */
  counts(): Promise<Readonly<Record<PaymentState, number>>>
  /** Payments settled or owed since (ms), summed by UTC day, operation, network and state; `own` payers apart. */
  sums(settledSince: number, own: readonly string[]): Promise<readonly PaymentSum[]>
  events(key: PaymentKey): Promise<readonly JournalEvent[]>
  /** Sales, debts and repayments in the order in which they were booked. */
  entries(window: EntryWindow): Promise<readonly LedgerEntry[]>
  /** What a window's entries add up to, by network and kind; `own` payers apart. */
  totals(window: Pick<EntryWindow, 'from' | 'before'>, own: readonly string[]): Promise<readonly EntryTotal[]>
  /** Forgets stored answers of payments settled before this moment (ms); the rows stay. */
  forgetAnswers(settledBefore: number): Promise<number>
  /** Finishes what was asked for, then closes the file or the connections. */
  close(): Promise<void>
}

/** A row that is not finished, and the process that moved it last. */
export interface OpenPayment extends PaymentRecord {
  readonly owner: string
}

export interface PaymentFilter {
  readonly states?: readonly PaymentState[]
  readonly operations?: readonly string[]
  readonly payer?: string
  /** Hash of the settlement, compared without regard to case. */
  readonly transaction?: string
  /** Settled from this moment (ms), or before it. */
  readonly settledSince?: number
  readonly settledBefore?: number
  /** Leaves the stored answers where they are. */
  readonly bare?: boolean
  readonly limit: number
}

export interface PaymentSum {
  /** Days since the epoch, UTC. */
  readonly day: number
  readonly operation: string
  readonly network: string
  readonly state: PaymentState
  readonly isOwn: boolean
  readonly count: number
  /** Different payers. */
  readonly payers: number
  readonly amount: bigint
}

export interface JournalEvent {
  readonly at: number
  readonly attempt: number
  readonly state: PaymentState
  readonly detail: string | null
}

export type EntryKind = 'sale' | 'debt' | 'repayment'

export interface LedgerEntry {
  /** Its place in the ledger's events. */
  readonly id: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly kind: EntryKind
  /** Why it is owed, or how it was repaid; null for a sale. */
  readonly note: string | null
  /** What the payment was for. Of a settled payment none of this changes any more. */
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

/** What entries of one network and kind add up to. */
export interface EntryTotal {
  readonly network: string
  readonly kind: EntryKind
  /** Paid by wallets of our own. */
  readonly isOwn: boolean
  readonly count: number
  /** Atomic units. */
  readonly amount: bigint
}

/** Entries from one moment up to another (ms, the second excluded), in order; `after` is the last one already read. */
export interface EntryWindow {
  readonly from: number
  readonly before: number
  readonly after?: Pick<LedgerEntry, 'at' | 'id'>
  readonly limit: number
}
