/**
 * Stores every answer and every failure of the venues, so that a query can ask for any earlier time, and until when each of them
 * must not be asked.
 */
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Database, Migration } from 'tollgate/plugin'
import { LRUCache } from 'lru-cache'
import type { PauseStore } from '../lib/feeds/requests.ts'
import { extremeSymbolsMigration } from './extreme-symbols.ts'
import type { Poll, VenueName } from './funding-rate.ts'
import { perpetualBooksMigration } from './perpetual-books.ts'
import { settlementMigration } from './settlement-store.ts'

/** The tables `funding_polls` and `funding_pauses`, those of settled rates and that of order books. */
export const migrations: readonly Migration[] = [
  (db) =>
    db.schema.createTable('funding_polls', (table) => {
      table.increments('id')
      table.text('venue').notNullable()
      table.double('known_at').notNullable()
      // The reason of a failure; null for an answer.
      table.text('error')
      // The parsed answer as compressed JSON; null for a failure.
      table.binary('poll')
      table.index(['venue', 'known_at'])
    }),
  settlementMigration,
  perpetualBooksMigration,
  extremeSymbolsMigration,
  (db) =>
    db.schema.createTable('funding_pauses', (table) => {
      table.text('venue').primary()
      // Epoch seconds.
      table.double('until').notNullable()
    }),
]

interface Row {
  readonly venue: VenueName
  readonly id: number
  readonly known_at: number
  readonly error: string | null
  readonly poll: Buffer | null
}

export interface RateStore extends PauseStore<VenueName> {
  add(venue: VenueName, knownAt: number, outcome: Poll | { readonly error: string }): Promise<void>
  /** The last answer known at `asOf` (epoch seconds), and the last failure if it is later. */
  last(venue: VenueName, asOf: number): Promise<{ poll: Poll | null; fetched: number | null; error: string | null }>
  /** Deletes what was superseded before a time. */
  forget(before: number): Promise<void>
}

/** Number of answers kept in memory. */
const HELD = 32

/** Creates a store on the database. It keeps the answers read last in memory, because every call reads them again. */
export function createRateStore(db: Database): RateStore {
  const held = new LRUCache<number, Poll>({ max: HELD })
  async function opened(id: number): Promise<Poll | null> {
    const known = held.get(id)
    if (known) return known
    const row = await db<Row>('funding_polls').where({ id }).first('poll')
    // Another call may have deleted it meanwhile.
    if (!row?.poll) return null
    const poll = JSON.parse(gunzipSync(row.poll).toString('utf8')) as Poll
    held.set(id, poll)
    return poll
  }
  const newest = (venue: VenueName, asOf: number) =>
    db<Row>('funding_polls')
      .where({ venue })
      .where('known_at', '<=', asOf)
      .orderBy('known_at', 'desc')
      .orderBy('id', 'desc')

  return {
    async add(venue, knownAt, outcome) {
      const error = 'error' in outcome ? outcome.error : null
      const poll = error === null ? gzipSync(JSON.stringify(outcome)) : null
      await db('funding_polls').insert({ venue, known_at: knownAt, error, poll })
    },
    async last(venue, asOf) {
      const attempt = await newest(venue, asOf).first('id', 'known_at', 'error')
      const answer =
        attempt?.error == null ? attempt : await newest(venue, asOf).whereNotNull('poll').first('id', 'known_at')
      const poll = answer ? await opened(answer.id) : null
      return { poll, fetched: (poll && answer?.known_at) ?? null, error: attempt?.error ?? null }
    },
    async keepPause(venue, until) {
      await db('funding_pauses').insert({ venue, until }).onConflict('venue').merge()
    },
    async pauses() {
      const rows = await db<{ venue: VenueName; until: number }>('funding_pauses')
      return new Map(rows.map(({ venue, until }) => [venue, until]))
    },
    async forget(before) {
      const venues = (await db('funding_polls').distinct('venue')) as { venue: VenueName }[]
      for (const { venue } of venues) {
        const kept = await newest(venue, before).whereNotNull('poll').first('known_at')
        if (kept) await db('funding_polls').where({ venue }).where('known_at', '<', kept.known_at).delete()
      }
    },
  }
}
