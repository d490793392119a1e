/**
 * Writes polls and their events. Everything a poll changes is stored in one transaction with its raw body, so a crash
 * leaves either all of it or nothing, and no event is lost or stored twice.
 */
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Database } from 'tollgate/plugin'
import { FeedError, type Item, type Source } from '../sources/source.ts'
import { withoutNoise } from '../sources/feed-body.ts'
import { parseBody, type ParsedBody } from '../sources/parsers.ts'
import { insertPolls } from '../store/change-counters.ts'
import type { Outcome, PollRow } from '../store/tables.ts'
import { confirmPending } from './revisions.ts'
import { createWriterState, FULL_RANGE, type SequenceRange, type WriterState } from './writer-state.ts'
import { storeItems, type Timing, type WriteResult } from './new-events.ts'

/** One request to a source, and what came back. */
export interface Poll {
  readonly source: Source
  /** When the bytes had arrived. */
  readonly at: number
  readonly url: string
  /** Null if there was no answer. */
  readonly status: number | null
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
  /** Why there is no body. */
  readonly failure?: string
}

export interface WriteOptions {
  readonly timing?: Partial<Timing>
  readonly range?: SequenceRange
  /** For a recorded poll: milliseconds that its own time and all times in it are shifted by. */
  readonly shift?: number
  /** How often the recording was played before. In each round the same item has a different key. */
  readonly round?: number
  /** Runs in the same transaction as the changes of the poll, or in the last one if there are several. */
  readonly inTransaction?: (tx: Database) => Promise<void>
}

export interface Writer {
  /** Stores a poll and the events that are new in it. Polls of all sources are written one after another. */
  write(poll: Poll, options?: WriteOptions): Promise<WriteResult>
  /** Stores items that were recorded one by one, without a poll. */
  add(poll: Poll, items: readonly Item[], options?: WriteOptions): Promise<WriteResult>
}

const doNothing = async (): Promise<void> => {}
const NO_CHANGES = { items: 0, fresh: 0, revised: 0, held: 0, repeated: 0, joined: 0 }

/** Creates a writer. Items that are dated later than `now` wait until their time comes. */
export function createWriter(db: Database, now: () => number, publisherOf: (source: string) => string): Writer {
  const store = { db, now, state: createWriterState(publisherOf) }
  let last: Promise<unknown> = Promise.resolve()

  /** Runs writes one after another. After a failure the writer's state may be wrong, so it is read again. */
  function queue(write: () => Promise<WriteResult>): Promise<WriteResult> {
    const run = last.then(write).catch((error: unknown) => {
      store.state.reset()
      throw error
    })
    last = run.catch(() => undefined)
    return run
  }

  return {
    write: (poll, options = {}) => queue(() => writePoll(store, poll, options)),
    add: (poll, items, options = {}) => queue(() => addItems(store, poll, items, options)),
  }
}

interface WriterParts {
  readonly db: Database
  readonly now: () => number
  readonly state: WriterState
}

async function writePoll(
  parts: WriterParts,
  recorded: Poll,
  { timing = {}, range = FULL_RANGE, shift, round = 0, inTransaction = doNothing }: WriteOptions,
): Promise<WriteResult> {
  const { db, now, state } = parts
  const poll = { ...recorded, at: recorded.at + (shift ?? 0) }
  const { source, at, body, status } = poll
  const writtenAt = shift === undefined ? Math.max(at, now()) : at
  const repeat = { range, now: writtenAt, inTransaction }
  if (status === 304) return writeUnchanged(parts, poll, { outcome: 'not_modified' }, repeat)
  if (body === null) {
    const detail = poll.failure ?? `The source answered ${status}.`
    return writeFailure(db, poll, { outcome: 'failed', detail }, inTransaction)
  }
  const sha256 = createHash('sha256')
    .update(withoutNoise(body.toString('latin1')))
    .digest('hex')
  const known = (await db('potus_feeds').where({ source: source.id }).first()) as FeedRow | undefined
  if (known?.sha256 === sha256 && known.parser === source.parser)
    return writeUnchanged(parts, poll, { outcome: 'unchanged', sha256 }, repeat)
  let parsed: ParsedBody
  try {
    parsed = parseBody(source, body, recorded.at)
  } catch (error) {
    if (!(error instanceof FeedError)) throw error
    const detail = `${error.reason}: ${error.message}`
    return writeFailure(db, poll, { outcome: 'quarantined', detail, sha256, body: gzipSync(body) }, inTransaction)
  }
  const options = {
    source,
    items: parsed.items.map((item) => shiftItem(item, shift, round)),
    isWhole: parsed.leftOut === 0,
    // Items of the first poll of a source may have been published long before, so they are backfill.
    timing: { now: writtenAt, ingest: known ? 'live' : 'backfill', measured: true, ...timing } as const,
    raw: { sha256, at, url: poll.url, parser: source.parser },
    state,
    range,
  }
  return storeItems(db, options, async (tx, { complete, fresh }) => {
    await storeValidators(tx, poll, complete ? sha256 : null)
    const { items } = options
    const row = { outcome: 'new', detail: remark(parsed), sha256, items: items.length, fresh } as const
    await insertPolls(tx, [pollRow(poll, { ...row, body: gzipSync(body) })])
    await inTransaction(tx)
  })
}

/** Stores a poll that repeats the last body. It confirms stubs and absences that wait for confirmation. */
async function writeUnchanged(
  { db, state }: WriterParts,
  poll: Poll,
  row: PollOutcome,
  { range, now, inTransaction }: Required<Pick<WriteOptions, 'range' | 'inTransaction'>> & { readonly now: number },
): Promise<WriteResult> {
  const confirmed = await db.transaction(async (tx) => {
    await state.lockForWriting(tx)
    await inTransaction(tx)
    await insertPolls(tx, [pollRow(poll, row)])
    if (row.sha256) await storeValidators(tx, poll, row.sha256)
    return confirmPending(tx, poll.source, { poll, now, state, range })
  })
  return { ...NO_CHANGES, outcome: row.outcome, ...confirmed }
}

/** Stores a poll that failed or was quarantined. */
async function writeFailure(
  db: Database,
  poll: Poll,
  row: PollOutcome,
  inTransaction: (tx: Database) => Promise<void>,
): Promise<WriteResult> {
  await db.transaction(async (tx) => {
    await insertPolls(tx, [pollRow(poll, row)])
    await inTransaction(tx)
  })
  return { ...NO_CHANGES, outcome: row.outcome }
}

async function addItems(
  { db, state }: WriterParts,
  { source, at, url }: Poll,
  items: readonly Item[],
  { timing = {}, range = FULL_RANGE, shift = 0, round = 0, inTransaction = doNothing }: WriteOptions,
): Promise<WriteResult> {
  const now = at + shift
  const options = {
    source,
    items: items.map((item) => shiftItem(item, shift, round)),
    isWhole: true,
    timing: { now, ingest: 'live', measured: true, ...timing } as const,
    raw: { sha256: '', at: now, url, parser: source.parser },
    state,
    range,
  }
  return storeItems(db, options, inTransaction)
}

/** The remark in the log of polls about entries that were skipped; null if none were. */
function remark({ leftOut }: ParsedBody): string | null {
  return leftOut === 0 ? null : `${leftOut} skipped: without a key or a date`
}

/** An item of a recording with its times shifted, and with a different key in each round. */
function shiftItem(item: Item, shift = 0, round = 0): Item {
  if (shift === 0 && round === 0) return item
  const { key, publishedAt, occurredAt, signedOn } = item
  return {
    ...item,
    key: round === 0 ? key : `${key}~${round + 1}`,
    publishedAt: publishedAt + shift,
    occurredAt: occurredAt === null ? null : occurredAt + shift,
    signedOn: signedOn === null ? null : new Date(Date.parse(signedOn) + shift).toISOString().slice(0, 10),
  }
}

interface FeedRow {
  readonly sha256: string | null
  readonly parser: string | null
}

type PollOutcome = Partial<PollRow> & { readonly outcome: Outcome }

function pollRow(poll: Poll, row: PollOutcome): PollRow {
  const headers = Object.keys(poll.headers).length > 0 ? JSON.stringify(poll.headers) : null
  const { at, url, status } = poll
  const plain = { detail: null, sha256: null, items: 0, fresh: 0, body: null }
  return { source: poll.source.id, at, url, status, headers, parser: poll.source.parser, ...plain, ...row }
}

/** Stores the validators only if every item was stored. Otherwise the next poll must get the whole body again. */
async function storeValidators(tx: Database, { source, headers }: Poll, sha256: string | null): Promise<void> {
  const validators =
    sha256 === null
      ? { etag: null, last_modified: null }
      : { etag: headers['etag'] ?? null, last_modified: headers['last-modified'] ?? null }
  const row = { source: source.id, ...validators, sha256, parser: source.parser }
  await tx('potus_feeds').insert(row).onConflict('source').merge()
}
