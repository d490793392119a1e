/**
 * Writes polls and their events. Everything a poll changes is stored in one transaction with its raw body, so a crash
 * leaves either all of it or nothing, and no event is lost or stored twice.
 */
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Database } from 'tollgate/plugin'
import { FeedError, type Item } from '../sources/source.ts'
import { withoutNoise } from '../sources/feed-body.ts'
import { parseBody, type ParsedBody } from '../sources/parsers.ts'
import { insertPolls } from '../store/change-counters.ts'
import { noteWatched } from '../store/watch-spans.ts'
import { writeListing } from './listings.ts'
import { storeItems, type Timing, type WriteResult } from './new-events.ts'
import {
  type FeedRow,
  type Poll,
  pollRow,
  storeValidators,
  writeFailure,
  type WriterParts,
  writeUnchanged,
} from './poll-records.ts'
import { endConfirmations } from './revisions.ts'
import { createWriterState, FULL_RANGE, type SequenceRange } from './writer-state.ts'

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
  /** Stores the poll of a source whose list is streamed. The body is gzip. Other polls are written between its parts. */
  writeListing(poll: Poll): Promise<WriteResult>
  /** Stores items that come without the whole list of their source: recorded one by one, or older ones. */
  add(poll: Poll, items: readonly Item[], options?: WriteOptions): Promise<WriteResult>
}

const doNothing = async (): Promise<void> => {}

/** Creates a writer. Items that are dated later than `now` wait until their time comes. */
export function createWriter(db: Database, now: () => number, publisherOf: (source: string) => string): Writer {
  const store = { db, now, state: createWriterState(publisherOf) }
  let last: Promise<unknown> = Promise.resolve()

  /** Runs writes one after another. After a failure the writer's state may be wrong, so it is read again. */
  function queue<Result>(write: () => Promise<Result>): Promise<Result> {
    const run = last.then(write).catch((error: unknown) => {
      store.state.reset()
      throw error
    })
    last = run.catch(() => undefined)
    return run
  }

  return {
    write: (poll, options = {}) => queue(() => writePoll(store, poll, options)),
    writeListing: (poll) => writeListing({ ...store, queue, writePoll: () => writePoll(store, poll, {}) }, poll),
    add: (poll, items, options = {}) => queue(() => addItems(store, poll, items, options)),
  }
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
    parsed = await parseBody(source, body, recorded.at)
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
  return storeItems(db, options, async (tx, { complete, fresh, change }) => {
    await endConfirmations(tx, source, change)
    await storeValidators(tx, poll, complete ? sha256 : null)
    const { items } = options
    const row = {
      outcome: parsed.leftOut > 0 ? 'partial' : 'new',
      detail: remark(parsed),
      sha256,
      items: items.length,
      fresh,
    } as const
    await insertPolls(tx, [pollRow(poll, { ...row, body: gzipSync(body) })])
    await noteWatched(tx, source, at)
    await inTransaction(tx)
  })
}

async function addItems(
  { db, state }: WriterParts,
  { source, at, url, body }: Poll,
  items: readonly Item[],
  { timing = {}, range = FULL_RANGE, shift = 0, round = 0, inTransaction = doNothing }: WriteOptions,
): Promise<WriteResult> {
  const now = at + shift
  const options = {
    source,
    items: items.map((item) => shiftItem(item, shift, round)),
    isWhole: false,
    timing: { now, ingest: 'live', measured: true, ...timing } as const,
    raw: {
      sha256: body === null ? '' : createHash('sha256').update(body).digest('hex'),
      at: now,
      url,
      parser: source.parser,
    },
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
