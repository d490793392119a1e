/**
 * Opens the journal: SQLite in a file of its own, or PostgreSQL when several processes share it. The writes of all calls
 * are committed in groups; each caller gets its own result once it is on disk.
 */
import { randomUUID } from 'node:crypto'
import type { Intent, RefusedOutcome } from '../../methods/payment-method.ts'
import { identify, isGone, retire } from '../../stores/process-identity.ts'
import { type Command, createGroupCommit } from './group-commit.ts'
import {
  type Journal,
  JournalError,
  type JournalHealth,
  type OpenPayment,
  PayerLimited,
  type Reservation,
  type StoredAnswer,
} from './journal.ts'
import { AnswerBody } from '../../plugin/answer-body.ts'
import { REPAID } from './ledger-sql.ts'
import { FREE_GAS } from './payer-limits.ts'
import { type Cause, type Move, MOVES, type PaymentState } from './payment-states.ts'
import type { Change, Store, Written } from './store.ts'

type JournalOptions = ({ readonly file: string } | { readonly url: string }) & {
  /** Identifies this opening of the journal; must be new after a restart. Default: random. */
  readonly instance?: string
  readonly now?: () => Date
  /** Resolves with what is wrong with the file, if a check that takes longer than the start finds something. */
  readonly damage?: { readonly found: Promise<string | null> }
  /** Called when the journal can be written again. */
  readonly onRecovered?: () => void
}

const HEARTBEAT_MS = 10_000
/** A process that was not seen for this long counts as dead. */
const SILENCE_MS = 3 * HEARTBEAT_MS
/** How often a journal that cannot be written is tried. */
const RETRY_MS = 1_000
const FORGET_OWNER_MS = 86_400_000
const FORGET_AT_ONCE = 500
/** How often a reservation is tried that is blocked by a payment which cannot be read. */
const MAX_TRIES = 20

/**
 * Opens or creates the journal. `file` may be ":memory:" for tests.
 *
 * @throws Error if the file or the database cannot be opened, or was written by a later release
 */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const store = await openStore(options)
  const { now: clock = () => new Date() } = options
  const now = (): number => clock().getTime()
  const owner = identify(options.instance ?? randomUUID())
  const state = new WriteState(store, options.onRecovered)
  void options.damage?.found.then((reason) => {
    if (reason !== null) state.damaged(reason)
  })
  const commits = createGroupCommit<Change, Written>({
    commit: (group) => state.watch(() => store.write(group)),
    wroteNothing: (error) => !(error instanceof JournalError) && store.wroteNothing(error),
  })
  // Reads of many calls share a statement too.
  const finds = createGroupCommit<Find, OpenPayment | null>({
    commit: (group) => findGroup(store, group),
    wroteNothing: () => true,
  })
  const move: MakeMove = async (key, attempt, to, fields, { body, at = now() } = {}) =>
    (await commits.write(moveChange(key, attempt, to, fields, { at, owner }, body))).done
  const touch = (): Promise<void> => state.watch(() => store.touch(owner, now(), now() - FORGET_OWNER_MS))
  await touch().catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  // The next heartbeat makes up for one that fails. If all fail, other processes may release what this one reserved.
  const heartbeat = setInterval(() => void touch().catch(() => {}), HEARTBEAT_MS).unref()
  const retry = setInterval(() => {
    if (!state.health.ready) touch().catch(() => {})
  }, RETRY_MS).unref()

  let closing: Promise<void> | null = null
  async function close(): Promise<void> {
    clearInterval(heartbeat)
    clearInterval(retry)
    await Promise.all([commits.close(), finds.close()])
    // A journal that cannot be written closes too. Its processes count as gone once they have ended.
    await state.watch(() => store.leave(owner)).catch(() => {})
    retire(owner)
    await store.close()
  }

  return {
    ...store.queries,
    ...movesOf(move, owner, now),
    owner,
    find: (key) => finds.write({ kind: 'key', key, size: 0, payer: '' }),
    findByIdentifier: (payer, identifier) => finds.write({ kind: 'identifier', key: identifier, size: 0, payer }),
    async reserve(reservation) {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const stamp = { at: now(), owner }
        const { done, record, ahead, limit = null } = await commits.write(reserveChange(reservation, stamp))
        // Otherwise another process released it at this very moment, and it can be taken over now.
        if (record !== null && (done || record.state !== 'released')) return { reserved: done, record, ahead }
        if (limit) throw new PayerLimited(limit)
      }
      throw new Error(`the payment in the way of ${reservation.key} could not be read`)
    },
    delivered: async (key) =>
      void (await commits.write({
        kind: 'deliver',
        key,
        size: 100,
        canWait: true,
        fields: { key, at: now() },
        body: AnswerBody.empty,
      })),
    claim: (key, attempt) => store.claim(key, attempt, owner, now()),
    repaid: (key, note, ending = 'repaid') => store.repaid(key, ending, storable(REPAID + note), now()),
    decided: (key, ending) => store.decided(key, ending, now()),
    async liveOwners() {
      const seen = await store.seenSince(now() - SILENCE_MS)
      return new Set([owner, ...seen.filter((instance) => !isGone(instance))])
    },
    async counts() {
      const found = await store.counts()
      return { ...NO_PAYMENTS, ...Object.fromEntries(found.map(({ state, count }) => [state, count])) }
    },
    health: () => state.health,
    async forgetAnswers(settledBefore) {
      let total = 0
      for (;;) {
        const forgotten = await store.forget(settledBefore, FORGET_AT_ONCE)
        total += forgotten
        if (forgotten < FORGET_AT_ONCE) return total
      }
    },
    close: () => (closing ??= close()),
  }
}

const NO_PAYMENTS: Readonly<Record<PaymentState, number>> = {
  reserved: 0,
  answered: 0,
  submitted: 0,
  settled: 0,
  released: 0,
  owed: 0,
  reversed: 0,
}

/** Makes a move of one payment; now and without an answer if nothing else is said. */
type MakeMove = (
  key: string,
  attempt: number,
  to: Move,
  fields: Fields,
  options?: { readonly body?: AnswerBody; readonly at?: number | undefined },
) => Promise<boolean>

type Moves = Pick<
  Journal,
  | 'answered'
  | 'submitted'
  | 'settled'
  | 'settledByOthers'
  | 'settledLate'
  | 'released'
  | 'refused'
  | 'owed'
  | 'reversed'
  | 'settledAgain'
>

/** The methods of the journal that move a payment. */
function movesOf(move: MakeMove, owner: string, now: () => number): Moves {
  return {
    answered: (key, attempt, answer) => move(key, attempt, 'answered', answeredFields(answer), { body: answer.body }),
    submitted(key, attempt, intent, { at, answer } = {}) {
      const fields = submittedFields(intent)
      if (!answer) return move(key, attempt, 'submitted', fields, { at })
      return move(
        key,
        attempt,
        'submittedWithAnswer',
        { ...answeredFields(answer), ...fields },
        { body: answer.body, at },
      )
    },
    settled: (key, attempt, transaction, at, { cause, reason, gasUsed } = {}) =>
      move(key, attempt, 'settled', { ...settledFields(transaction, cause, reason), ...excessFields(gasUsed) }, { at }),
    settledByOthers: (key, attempt, transaction, reason) =>
      move(key, attempt, 'settledByOthers', {
        ...settledFields(transaction, 'foreign_owed', reason),
        drops_answer: 1,
      }),
    settledLate: (key, attempt, transaction, reason) =>
      move(key, attempt, 'settledLate', settledFields(transaction, 'late', reason)),
    released: (key, attempt, reason) => move(key, attempt, 'released', reasonFields(reason)),
    refused: (key, attempt, outcome) => move(key, attempt, 'refused', refusedFields(outcome, owner, now())),
    owed: (key, attempt, reason, cause = null) =>
      move(key, attempt, 'owed', { ...reasonFields(reason), ...causeFields(cause) }),
    reversed: (key, attempt, reason) => move(key, attempt, 'reversed', reasonFields(reason)),
    settledAgain: (key, attempt, transaction) => move(key, attempt, 'settledAgain', settledFields(transaction)),
  }
}

/** Knows whether the journal can be written, from what became of its writes. */
class WriteState {
  readonly #store: Pick<Store, 'failureOf' | 'wroteNothing'>
  readonly #onRecovered: () => void
  #isDamaged = false
  #health: JournalHealth = { ready: true }

  constructor(store: Pick<Store, 'failureOf' | 'wroteNothing'>, onRecovered: () => void = () => {}) {
    this.#store = store
    this.#onRecovered = onRecovered
  }

  get health(): JournalHealth {
    return this.#health
  }

  /** Runs a write. Throws JournalError if it fails because of the database, and what the database throws otherwise. */
  async watch<Result>(write: () => Promise<Result>): Promise<Result> {
    try {
      const result = await write()
      this.#recover()
      return result
    } catch (error) {
      const failure = this.#store.failureOf(error)
      if (!failure) throw error
      if (failure.isDamaged) this.damaged(failure.reason)
      else if (!this.#isDamaged) this.#health = { ready: false, reason: failure.reason }
      throw new JournalError(failure.reason, this.#store.wroteNothing(error), error)
    }
  }

  /** A damaged file may still take some writes, and loses others: nothing but a restore makes it good. */
  damaged(reason: string): void {
    this.#isDamaged = true
    this.#health = { ready: false, reason }
  }

  #recover(): void {
    if (this.#health.ready || this.#isDamaged) return
    this.#health = { ready: true }
    this.#onRecovered()
  }
}

async function openStore(options: JournalOptions): Promise<Store> {
  if ('file' in options) return (await import('./sqlite.ts')).openSqlite(options.file)
  return (await import('./postgres.ts')).openPostgres(options.url)
}

/** A payment to find: by its key, or the unreleased one of a payer by its identifier, which is then in `key`. */
interface Find extends Command {
  readonly kind: 'key' | 'identifier'
  readonly payer: string
}

/** Finds a group of one kind with one statement. */
function findGroup(store: Store, group: readonly Find[]): Promise<readonly (OpenPayment | null)[]> {
  if (group[0]?.kind === 'key') return store.find(group.map(({ key }) => key))
  return store.findByIdentifier(group.map(({ payer, key }) => [payer, key]))
}

/** Written with every change. */
interface Stamp {
  readonly at: number
  readonly owner: string
}

/** Columns of a change. */
type Fields = Readonly<Record<string, string | number>>

function reserveChange(reservation: Reservation, stamp: Stamp): Change {
  const { key, callId } = reservation
  const fields = {
    key,
    fingerprint: reservation.fingerprint,
    operation: reservation.operation,
    route: reservation.route,
    network: reservation.network,
    asset: reservation.asset,
    payer: reservation.payer,
    pay_to: reservation.payTo,
    amount: String(reservation.amount),
    nonce: reservation.identity,
    valid_after: String(reservation.startsAt),
    valid_before: String(reservation.expiresAt),
    signature: reservation.proof,
    version: reservation.version,
    price_version: reservation.priceVersion,
    call_id: callId,
    ...(reservation.identifier === null ? {} : { identifier: reservation.identifier }),
    ...(reservation.place === null ? {} : { place: reservation.place }),
    ...(reservation.payerCode ? { payer_code: reservation.payerCode } : {}),
    ...(reservation.paysGas ? { pays_gas: 1 } : {}),
    ...stamp,
    note: storable(callId),
  }
  return { kind: 'reserve', key, size: 1_000, fields, body: AnswerBody.empty }
}

function moveChange(
  key: string,
  attempt: number,
  move: Move,
  columns: Fields,
  stamp: Stamp,
  body: AnswerBody = AnswerBody.empty,
): Change {
  const { from, to } = MOVES[move]
  const fields = { key, attempt, state: to, allowed: from.join(' '), ...stamp, ...columns }
  return { kind: 'move', key, size: 1_000 + body.length, fields, body }
}

function answeredFields(answer: StoredAnswer): Fields {
  return {
    note: `${answer.status}, ${answer.body.length} bytes`,
    answer_status: answer.status,
    answer_headers: JSON.stringify(answer.headers),
  }
}

function submittedFields(intent: Intent): Fields {
  const { kind, transaction, url } = intent
  return {
    note: storable(transaction ?? url ?? kind),
    intent: JSON.stringify(intent),
    ...(transaction === undefined ? {} : { transaction_hash: transaction }),
  }
}

function settledFields(transaction: string, cause: Cause | null = null, reason?: string): Fields {
  const named = reason === undefined ? {} : { reason: storable(reason) }
  return { transaction_hash: transaction, note: transaction, ...named, ...causeFields(cause) }
}

function causeFields(cause: Cause | null): Fields {
  return cause === null ? {} : { cause }
}

/** Gas beyond what a payer without code may use; nothing if there is none. */
function excessFields(gasUsed = 0n): Fields {
  return gasUsed > FREE_GAS ? { excess_gas: Number(gasUsed - FREE_GAS) } : {}
}

/** @param owner the only one that may release the payment as never sent */
function refusedFields(
  { reason, message, transaction, unsent, burnt }: RefusedOutcome,
  owner: string,
  at: number,
): Fields {
  return {
    ...reasonFields(reason),
    note: storable(`${reason}: ${message}`),
    ...(transaction === undefined ? {} : { transaction_hash: transaction }),
    ...(unsent ? { owned: owner } : {}),
    ...(burnt === undefined ? {} : { reverted_at: at, burnt: String(burnt) }),
  }
}

function reasonFields(reason: string): Fields {
  return { reason: storable(reason), note: storable(reason) }
}

/** Makes text from outside fit for both databases: at most 500 characters, no NUL, no lone surrogates. */
function storable(text: string): string {
  return Buffer.from(text.slice(0, 500).replaceAll('\0', '')).toString()
}
