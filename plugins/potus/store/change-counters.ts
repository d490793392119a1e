/**
 * Counters in `potus_notes` that every transaction raises which changes the feed. A process that remembers what it read
 * compares them to learn whether another process has written since.
 */
import type { Database } from 'tollgate/plugin'
import type { PollRow } from './tables.ts'

/** Raised by every transaction that adds events or versions, before it adds them. */
export const TURN = 'turn'
/** Raised by every transaction that adds polls, before it adds them. */
export const POLLS = 'polls'
/** Raised when rows are deleted. */
const REMOVALS = 'removals'
/** They only ever rise, also when everything else in the store is deleted. */
export const COUNTERS: readonly string[] = [TURN, POLLS, REMOVALS]

export interface Counters {
  readonly turn: number
  readonly polls: number
  readonly removals: number
}

/** Reads the counters: one statement that finds three rows by their key. */
export async function readCounters(db: Database): Promise<Counters> {
  const rows = await db<{ name: string; value: string }>('potus_notes').whereIn('name', COUNTERS)
  const of = (name: string): number => Number(rows.find((row) => row.name === name)?.value ?? 0)
  return { turn: of(TURN), polls: of(POLLS), removals: of(REMOVALS) }
}

/**
 * Raises a counter and returns its new value. The row stays locked until the transaction ends, so the rows that such
 * transactions add become visible in the order of their ids.
 */
export async function raiseCounter(tx: Database, name: string): Promise<number> {
  const next = tx.raw('cast(cast(potus_notes.value as bigint) + 1 as text)')
  const [row] = (await tx('potus_notes')
    .insert({ name, value: '1' })
    .onConflict('name')
    .merge({ value: next })
    .returning('value')) as { value: string }[]
  return Number(row?.value)
}

/** Adds polls to the log. */
export async function insertPolls(tx: Database, rows: readonly Partial<PollRow>[]): Promise<void> {
  await raiseCounter(tx, POLLS)
  await tx('potus_polls').insert(rows)
}

/** Tells other processes that rows were deleted. Call it in the transaction that deletes them. */
export async function noteRemoval(tx: Database): Promise<void> {
  await raiseCounter(tx, REMOVALS)
}
