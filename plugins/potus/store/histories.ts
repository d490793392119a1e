/** How far the older items of each source have been fetched: stored with the items, so that a load goes on where it ended. */
import type { Database } from 'tollgate/plugin'
import { POLLS, raiseCounter } from './change-counters.ts'

export interface HistoryRow {
  readonly source: string
  readonly state: 'loading' | 'done'
  /** Where to go on, as JSON of the loader. */
  readonly position: string
  /** Requests that were answered. */
  readonly pages: number
  /** Items that were read, known ones included. */
  readonly items: number
  /** Items that were new. */
  readonly fresh: number
  /** When the oldest of them was published. */
  readonly oldest: number | null
  /** The part that is done, from 0 to 1; null if it cannot be known. */
  readonly share: number | null
  readonly started_at: number
  readonly updated_at: number
  readonly finished_at: number | null
  /** Why the last request failed; null if it did not. */
  readonly detail: string | null
}

/** The row of a source; null if no load of it has begun. */
export async function readHistory(db: Database, source: string): Promise<HistoryRow | null> {
  return (await db<HistoryRow>('potus_histories').where({ source }).first()) ?? null
}

/** The rows of all sources of which a load has begun. */
export async function readHistories(db: Database): Promise<HistoryRow[]> {
  return db<HistoryRow>('potus_histories').orderBy('source')
}

/** Stores a row. Processes that remember the rows read them again. */
export async function writeHistory(db: Database, row: HistoryRow): Promise<void> {
  await raiseCounter(db, POLLS)
  await db('potus_histories').insert(row).onConflict('source').merge()
}

/** A load that begins now. */
export function newHistory(source: string, position: string, at: number): HistoryRow {
  return {
    source,
    state: 'loading',
    position,
    pages: 0,
    items: 0,
    fresh: 0,
    oldest: null,
    share: null,
    started_at: at,
    updated_at: at,
    finished_at: null,
    detail: null,
  }
}

/** The earlier of two times; null counts as no time. */
export function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}
