/**
 * The ledger behind the money path: SQLite in a file of its own, or PostgreSQL when many processes share it. Writes of
 * all calls gather in groups; each caller gets its own result once it is on disk.
 */
import { randomUUID } from 'node:crypto'
import { identify, isGone, retire } from '../../stores/instance.ts'
import type { Journal, PaymentState } from './journal.ts'
import {
  answered,
  because,
  type Change,
  deliver,
  move,
  type MoveFields,
  refused,
  reserve,
  submitted,
  words,
  type Move,
} from './changes.ts'
import { repaidBy } from './entries.ts'
import { createGroups } from './groups.ts'
import type { Store, Written } from './store.ts'

export type JournalOptions = ({ readonly file: string } | { readonly url: string }) & {
  /** A word for this opening of the ledger, never used again after a restart. */
  readonly instance?: string
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

const HEARTBEAT_MS = 10_000
/** A process not heard of for this long counts as dead. */
const SILENCE_MS = 3 * HEARTBEAT_MS
const FORGET_INSTANCE_MS = 86_400_000
const FORGET_AT_ONCE = 500

/**
 * Opens or creates the ledger. `file` may be ":memory:" for tests. Throws where the file or the database cannot be
 * opened, or was written by a later release.
 */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const store = await openStore(options)
  const now = options.now ?? Date.now
  const owner = identify(options.instance ?? randomUUID())
  const groups = createGroups<Change, Written>({
    commit: (group) => store.write(group),
    wroteNothing: (error) => store.wroteNothing(error),
  })
  const stamp = () => ({ at: now(), owner })
  const step = async (key: string, attempt: number, to: Move, fields: MoveFields, body?: Buffer): Promise<boolean> =>
    (await groups.write(move(key, attempt, to, fields, stamp(), body))).done
  const touch = (): Promise<void> => store.touch(owner, now(), now() - FORGET_INSTANCE_MS)
  await touch()
  // A beat that fails is made up for by the next; should all fail, the others may release what this process reserved.
  const heartbeat = setInterval(() => void touch().catch(() => {}), HEARTBEAT_MS).unref()

  let closing: Promise<void> | null = null
  async function close(): Promise<void> {
    clearInterval(heartbeat)
    await groups.close()
    await store.leave(owner)
    retire(owner)
    await store.close()
  }

  return {
    owner,
    find: (key) => store.find(key),
    identified: (payer, identifier) => store.identified(payer, identifier),
    async reserve(reservation) {
      for (;;) {
        const { done, record } = await groups.write(reserve(reservation, stamp()))
        // Else another process released it at this very moment: it may be taken over now.
        if (record !== null && (done || record.state !== 'released')) return { reserved: done, record }
      }
    },
    answered: (key, attempt, answer) => step(key, attempt, 'answered', answered(answer), answer.body),
    submitted: (key, attempt, intent) => step(key, attempt, 'submitted', submitted(intent)),
    settled: (key, attempt, transaction) =>
      step(key, attempt, 'settled', { transaction_hash: transaction, detail: transaction }),
    late: (key, attempt, transaction) =>
      step(key, attempt, 'late', { transaction_hash: transaction, detail: transaction }),
    released: (key, attempt, reason) => step(key, attempt, 'released', because(reason)),
    refused: (key, attempt, outcome) => step(key, attempt, 'refused', refused(outcome, owner)),
    delivered: async (key) => void (await groups.write(deliver(key, stamp()))),
    claim: (key, attempt) => store.claim(key, attempt, owner, now()),
    owed: (key, attempt, reason) => step(key, attempt, 'owed', because(reason)),
    repaid: (key, note) => store.repaid(key, words(repaidBy(note)), now()),
    open: () => store.open(),
    list: (filter) => store.list(filter),
    debts: () => store.debts(),
    sums: (settledSince, own) => store.sums(settledSince, own),
    async living() {
      const seen = await store.seenSince(now() - SILENCE_MS)
      return new Set([owner, ...seen.filter((instance) => !isGone(instance))])
    },
    async counts() {
      const none = { reserved: 0, answered: 0, submitted: 0, settled: 0, released: 0, owed: 0 }
      const counts: Record<PaymentState, number> = none
      for (const { state, count } of await store.counts()) counts[state] = count
      return counts
    },
    events: (key) => store.events(key),
    entries: (window) => store.entries(window),
    totals: (window, own) => store.totals(window, own),
    async forgetAnswers(settledBefore) {
      let forgotten = 0
      for (;;) {
        const some = await store.forget(settledBefore, FORGET_AT_ONCE)
        forgotten += some
        if (some < FORGET_AT_ONCE) return forgotten
      }
    },
    close: () => (closing ??= close()),
  }
}

async function openStore(options: JournalOptions): Promise<Store> {
  if ('file' in options) return (await import('./sqlite.ts')).openSqlite(options.file)
  return (await import('./postgres.ts')).openPostgres(options.url)
}
