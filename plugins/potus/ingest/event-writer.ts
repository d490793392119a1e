/**
 * The one writer. What a poll changes is one transaction with the raw body and what the read side counts: after a kill
 * it has happened or it has not, so nothing is lost and nothing is there twice.
 */
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Database } from 'tollgate/plugin'
import { FeedError, type Item, type Source } from '../sources/source.ts'
import { withoutNoise } from '../sources/feed-body.ts'
import { parseBody, type ParsedBody } from '../sources/parsers.ts'
import type { Outcome, PollRow } from '../store/tables.ts'
import { confirmPending } from './revisions.ts'
import { createWriterState, FULL_RANGE, type SequenceRange } from './writer-state.ts'
import { storeItems, type Timing, type WriteResult } from './new-events.ts'

/** One look at a source. */
export interface Poll {
  readonly source: Source
  /** When the bytes were first held. */
  readonly at: number
  readonly url: string
  /** Null where there was no answer. */
  readonly status: number | null
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
  /** Why there is no body, where there is none. */
  readonly failure?: string
}

export interface WriteOptions {
  readonly timing?: Partial<Timing>
  readonly range?: SequenceRange
  /** The poll is a recording: its own time counts, moved by this many milliseconds as all its times are. */
  readonly shift?: number
  /** How often the recording was played before: the same item comes again under a key of its own. */
  readonly round?: number
  /** Written in the same transaction as what the poll changes, or its last where there are several. */
  readonly inTransaction?: (tx: Database) => Promise<void>
}

export interface Writer {
  /** Stores a poll and what is new in it. Polls of all sources are written one after another. */
  write(poll: Poll, options?: WriteOptions): Promise<WriteResult>
  /** Stores items that were seen one by one, without a poll. */
  add(poll: Poll, items: readonly Item[], options?: WriteOptions): Promise<WriteResult>
}

const nothing = async (): Promise<void> => {}
const NOTHING = { items: 0, fresh: 0, revised: 0, held: 0, repeated: 0, joined: 0 }

export function createWriter(db: Database, now: () => number, publisherOf: (source: string) => string): Writer {
  const memory = createWriterState(publisherOf)
  let last: Promise<unknown> = Promise.resolve()

  async function write(
    recorded: Poll,
    {
      timing: sight = {},
      range: stretch = FULL_RANGE,
      shift,
      round: turn = 0,
      inTransaction: alongside = nothing,
    }: WriteOptions,
  ): Promise<WriteResult> {
    const poll = { ...recorded, at: recorded.at + (shift ?? 0) }
    const { source, at, body, status } = poll
    const time = shift === undefined ? Math.max(at, now()) : at
    if (status === 304) return again(poll, { outcome: 'not_modified' }, { stretch, time, alongside })
    if (body === null) {
      return note(poll, { outcome: 'failed', detail: poll.failure ?? `It answered ${status}.` }, alongside)
    }
    const sha256 = createHash('sha256')
      .update(withoutNoise(body.toString('latin1')))
      .digest('hex')
    const known = (await db('potus_feeds').where({ source: source.id }).first()) as FeedRow | undefined
    if (known?.sha256 === sha256 && known.parser === source.parser)
      return again(poll, { outcome: 'unchanged', sha256 }, { stretch, time, alongside })
    let parsed: ParsedBody
    try {
      parsed = parseBody(source, body, recorded.at)
    } catch (error) {
      if (!(error instanceof FeedError)) throw error
      const detail = `${error.reason}: ${error.message}`
      return note(poll, { outcome: 'quarantined', detail, sha256, body: gzipSync(body) }, alongside)
    }
    const items = parsed.items.map((item) => moved(item, shift, turn))
    // What a source showed before we first looked was not seen appearing.
    const seen: Timing = { now: time, ingest: known ? 'live' : 'backfill', measured: true, ...sight }
    const raw = { sha256, at, url: poll.url, parser: source.parser }
    const taking = { source, items, isWhole: parsed.leftOut === 0, sight: seen, raw, memory, stretch }
    return storeItems(db, taking, async (tx, { complete, fresh }) => {
      await keepValidators(tx, poll, complete ? sha256 : null)
      await tx('potus_polls').insert(
        rowOf(poll, {
          outcome: 'new',
          detail: remark(parsed),
          sha256,
          items: items.length,
          fresh,
          body: gzipSync(body),
        }),
      )
      await alongside(tx)
    })
  }

  /** The same as last time: it agrees with what waits for agreement. */
  async function again(
    poll: Poll,
    row: Partial<PollRow> & { outcome: Outcome },
    { stretch, time, alongside }: { stretch: SequenceRange; time: number; alongside: (tx: Database) => Promise<void> },
  ): Promise<WriteResult> {
    const settled = await db.transaction(async (tx) => {
      await memory.takeTurn(tx)
      await alongside(tx)
      await tx('potus_polls').insert(rowOf(poll, row))
      if (row.sha256) await keepValidators(tx, poll, row.sha256)
      return confirmPending(tx, poll.source, { poll, now: time, memory, stretch })
    })
    return { ...NOTHING, outcome: row.outcome, ...settled }
  }

  /** A poll that brought nothing good. */
  async function note(
    poll: Poll,
    row: Partial<PollRow> & { outcome: Outcome },
    alongside: (tx: Database) => Promise<void>,
  ): Promise<WriteResult> {
    await db.transaction(async (tx) => {
      await tx('potus_polls').insert(rowOf(poll, row))
      await alongside(tx)
    })
    return { ...NOTHING, outcome: row.outcome }
  }

  async function add(
    { source, at, url }: Poll,
    items: readonly Item[],
    {
      timing: sight = {},
      range: stretch = FULL_RANGE,
      shift = 0,
      round: turn = 0,
      inTransaction: alongside = nothing,
    }: WriteOptions,
  ): Promise<WriteResult> {
    const { seenAt, ...own } = sight
    const now = at + shift
    const seen: Timing = { now, ingest: 'live', measured: true, ...own, ...(seenAt ? { seenAt } : {}) }
    const raw = { sha256: '', at: now, url, parser: source.parser }
    const shifted = items.map((item) => moved(item, shift, turn))
    return storeItems(db, { source, items: shifted, isWhole: true, sight: seen, raw, memory, stretch }, alongside)
  }

  /** One after another; after a failure nothing remembered is certain. */
  function queued(work: () => Promise<WriteResult>): Promise<WriteResult> {
    const run = last.then(work).catch((error: unknown) => {
      memory.forget()
      throw error
    })
    last = run.catch(() => undefined)
    return run
  }

  return {
    write: (poll, options = {}) => queued(() => write(poll, options)),
    add: (poll, items, options = {}) => queued(() => add(poll, items, options)),
  }
}

/** What the log says of entries that could not be taken. */
function remark({ leftOut }: ParsedBody): string | null {
  return leftOut === 0 ? null : `${leftOut} left out: without a key or a date`
}

/** An item of a recording at its new time. */
function moved(item: Item, shift = 0, turn = 0): Item {
  if (shift === 0 && turn === 0) return item
  const { key, publishedAt, occurredAt, signedOn } = item
  return {
    ...item,
    key: turn === 0 ? key : `${key}~${turn + 1}`,
    publishedAt: publishedAt + shift,
    occurredAt: occurredAt === null ? null : occurredAt + shift,
    signedOn: signedOn === null ? null : new Date(Date.parse(signedOn) + shift).toISOString().slice(0, 10),
  }
}

interface FeedRow {
  readonly sha256: string | null
  readonly parser: string | null
}

function rowOf(poll: Poll, row: Partial<PollRow> & { outcome: Outcome }): PollRow {
  const headers = Object.keys(poll.headers).length > 0 ? JSON.stringify(poll.headers) : null
  const { at, url, status } = poll
  const plain = { detail: null, sha256: null, items: 0, fresh: 0, body: null }
  return { source: poll.source.id, at, url, status, headers, parser: poll.source.parser, ...plain, ...row }
}

/** Kept only where everything in the body was taken: else the whole body is wanted again. */
async function keepValidators(tx: Database, { source, headers }: Poll, sha256: string | null): Promise<void> {
  const validators =
    sha256 === null
      ? { etag: null, last_modified: null }
      : { etag: headers['etag'] ?? null, last_modified: headers['last-modified'] ?? null }
  const row = { source: source.id, ...validators, sha256, parser: source.parser }
  await tx('potus_feeds').insert(row).onConflict('source').merge()
}
