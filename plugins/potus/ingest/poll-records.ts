/** The log of polls: what a poll stores about itself, whatever it found. */
import type { Database } from 'tollgate/plugin'
import type { Source } from '../sources/source.ts'
import { insertPolls } from '../store/change-counters.ts'
import { noteUnwatched, noteWatched } from '../store/watch-spans.ts'
import type { Outcome, PollRow } from '../store/tables.ts'
import type { WriteResult } from './new-events.ts'
import type { Fetched } from './fetch.ts'
import { confirmPending } from './revisions.ts'
import type { SequenceRange, WriterState } from './writer-state.ts'

/** One request to a source, and what came back. */
export interface Poll extends Fetched {
  readonly source: Source
  /** When the bytes had arrived. */
  readonly at: number
}

export interface WriterParts {
  readonly db: Database
  readonly now: () => number
  readonly state: WriterState
}

export const NO_CHANGES = { items: 0, fresh: 0, revised: 0, held: 0, repeated: 0, joined: 0 }

export interface UnchangedOptions {
  readonly range: SequenceRange
  readonly now: number
  /** Runs in the transaction that stores the poll. */
  readonly inTransaction: (tx: Database) => Promise<void>
}

/** Stores a poll that repeats the last body. It confirms stubs and absences that wait for confirmation. */
export async function writeUnchanged(
  { db, state }: WriterParts,
  poll: Poll,
  row: PollOutcome,
  { range, now, inTransaction }: UnchangedOptions,
): Promise<WriteResult> {
  const confirmed = await db.transaction(async (tx) => {
    await state.lockForWriting(tx)
    await inTransaction(tx)
    await insertPolls(tx, [pollRow(poll, row)])
    await noteWatched(tx, poll.source, poll.at)
    if (row.sha256) await storeValidators(tx, poll, row.sha256)
    return confirmPending(tx, poll.source, { poll, now, state, range })
  })
  return { ...NO_CHANGES, outcome: row.outcome, ...confirmed }
}

/** Stores a poll that failed or was quarantined. */
export async function writeFailure(
  db: Database,
  poll: Poll,
  row: PollOutcome,
  inTransaction: (tx: Database) => Promise<void>,
): Promise<WriteResult> {
  await db.transaction(async (tx) => {
    await insertPolls(tx, [pollRow(poll, row)])
    await noteUnwatched(tx, poll.source, poll.at)
    await inTransaction(tx)
  })
  return { ...NO_CHANGES, outcome: row.outcome }
}

export interface FeedRow {
  readonly sha256: string | null
  readonly parser: string | null
}

export type PollOutcome = Partial<PollRow> & { readonly outcome: Outcome }

export function pollRow(poll: Poll, row: PollOutcome): PollRow {
  const headers = Object.keys(poll.headers).length > 0 ? JSON.stringify(poll.headers) : null
  const { at, url, status } = poll
  const plain = { detail: null, sha256: null, items: 0, fresh: 0, body: null }
  return { source: poll.source.id, at, url, status, headers, parser: poll.source.parser, ...plain, ...row }
}

/** Stores the validators only if every item was stored. Otherwise the next poll must get the whole body again. */
export async function storeValidators(tx: Database, { source, headers }: Poll, sha256: string | null): Promise<void> {
  const validators =
    sha256 === null
      ? { etag: null, last_modified: null }
      : { etag: headers['etag'] ?? null, last_modified: headers['last-modified'] ?? null }
  const row = { source: source.id, ...validators, sha256, parser: source.parser }
  await tx('potus_feeds').insert(row).onConflict('source').merge()
}
