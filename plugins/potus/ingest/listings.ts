/**
 * Writes the poll of a source that lists everything it ever published. The list is read row by row and stored in batches,
 * each in a transaction of its own and in turn with the polls of other sources. What is known costs one lookup of its hash.
 * A process that is killed begins again with the next poll, and finds what it had stored.
 */
import { createHash } from 'node:crypto'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { Database } from 'tollgate/plugin'
import { jsonRows } from '../sources/json-rows.ts'
import { parseRow } from '../sources/parsers.ts'
import { FeedError, type Item, type Source } from '../sources/source.ts'
import { insertPolls } from '../store/change-counters.ts'
import { noteWatched } from '../store/watch-spans.ts'
import { earlier, type HistoryRow, newHistory, readHistory, writeHistory } from '../store/histories.ts'
import { believedMissing, contentHash, eventId } from './feed-changes.ts'
import { storeItems, type Timing, type WriteResult } from './new-events.ts'
import {
  type FeedRow,
  NO_CHANGES,
  type Poll,
  pollRow,
  storeValidators,
  writeFailure,
  type WriterParts,
  writeUnchanged,
} from './poll-records.ts'
import { applyChanges, endAbsences } from './revisions.ts'
import { FULL_RANGE } from './writer-state.ts'

export interface ListingParts extends WriterParts {
  /** Runs a write after those that were asked for before. */
  readonly queue: <Result>(write: () => Promise<Result>) => Promise<Result>
  /** Stores a poll without a body. */
  readonly writePoll: () => Promise<WriteResult>
}

/** Rows that are compared and stored together. */
const BATCH = 200
/** An unknown item that is older than this was missed by an earlier poll: it is backfill. */
const GAP_MS = 86_400_000
/** Replies and likes of items older than this are no longer stored. */
const COUNTED_MS = 7 * 86_400_000

export async function writeListing(parts: ListingParts, poll: Poll): Promise<WriteResult> {
  const { db, now, queue, writePoll } = parts
  const { source, at, body } = poll
  if (body === null || poll.status === 304) return queue(writePoll)
  const sha256 = await hashOf(body)
  const writtenAt = Math.max(at, now())
  const known = (await db('potus_feeds').where({ source: source.id }).first()) as FeedRow | undefined
  if (known?.sha256 === sha256 && known.parser === source.parser) {
    const repeat = { range: FULL_RANGE, now: writtenAt, inTransaction: async () => {} }
    return queue(() => writeUnchanged(parts, poll, { outcome: 'unchanged', sha256 }, repeat))
  }
  const listing = new Listing(parts, poll, sha256, writtenAt, !known)
  try {
    return await listing.store()
  } catch (error) {
    if (!(error instanceof FeedError)) throw error
    const detail = `${error.reason}: ${error.message}`
    return queue(() => writeFailure(db, poll, { outcome: 'quarantined', detail, sha256 }, async () => {}))
  }
}

async function hashOf(packed: Buffer): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of unpacked(packed)) hash.update(chunk)
  return hash.digest('hex')
}

/** The bytes of a gzip body, in chunks. */
function unpacked(packed: Buffer): AsyncIterable<Buffer> {
  // Errors reach whoever reads the end of the pipeline.
  return pipeline(Readable.from([packed]), createGunzip(), () => {})
}

interface Stored {
  readonly id: string
  readonly seq: number
  readonly status: string
  readonly hash: string
  readonly superseded: number | null
}

class Listing {
  readonly #parts: ListingParts
  readonly #poll: Poll
  readonly #sha256: string
  readonly #now: number
  /** True for the first list of a source, whose items were published before we knew it. */
  readonly #isFirst: boolean
  readonly #keys = new Set<string>()
  #history: HistoryRow | null = null
  #oldest = Infinity
  #leftOut = 0
  #isComplete = true
  readonly #sum = { ...NO_CHANGES }

  constructor(parts: ListingParts, poll: Poll, sha256: string, now: number, isFirst: boolean) {
    this.#parts = parts
    this.#poll = poll
    this.#sha256 = sha256
    this.#now = now
    this.#isFirst = isFirst
  }

  async store(): Promise<WriteResult> {
    const { db, queue } = this.#parts
    const { source, at, body } = this.#poll
    if (this.#isFirst) this.#history = (await readHistory(db, source.id)) ?? newHistory(source.id, '', this.#now)
    const held = await this.#heldSeqs()
    let batch: Item[] = []
    for await (const row of jsonRows(unpacked(body as Buffer))) {
      const item = parseRow(source, row, at)
      if (!item) this.#leftOut += 1
      else if (!this.#keys.has(item.key)) {
        this.#keys.add(item.key)
        this.#oldest = Math.min(this.#oldest, item.publishedAt)
        batch.push(item)
      }
      if (batch.length < BATCH) continue
      await this.#storeBatch(batch, held)
      batch = []
    }
    if (batch.length > 0) await this.#storeBatch(batch, held)
    if (this.#keys.size < source.minItems)
      throw new FeedError(
        'too_few_items',
        `The list has ${this.#keys.size} items; at least ${source.minItems} are expected.`,
      )
    return queue(() => db.transaction((tx) => this.#finish(tx)))
  }

  /** Stores what is new or different in a batch. */
  async #storeBatch(items: readonly Item[], held: ReadonlySet<number>): Promise<void> {
    const { db, queue } = this.#parts
    const stored = await storedVersions(db, this.#poll.source, items)
    const changed: Item[] = []
    const counted: { seq: number; item: Item }[] = []
    for (const item of items.toSorted((a, b) => a.publishedAt - b.publishedAt)) {
      const versions = stored.get(eventId(this.#poll.source.id, item.key)) ?? []
      const current = versions.find(({ superseded }) => superseded === null)
      const isSettled = current && current.status !== 'retracted' && !held.has(current.seq)
      if (!isSettled || !versions.some(({ hash }) => hash === contentHash(item))) changed.push(item)
      else if (item.counts && item.publishedAt > this.#now - COUNTED_MS) counted.push({ seq: current.seq, item })
    }
    this.#sum.items += items.length
    this.#sum.repeated += items.length - changed.length
    // Counts of items that did not change are stored apart.
    if (counted.length > 0)
      await db.transaction(async (tx) => {
        for (const { seq, item } of counted)
          await tx('potus_engagement')
            .insert({ seq, observed_at: this.#poll.at, ...item.counts })
            .onConflict('seq')
            .merge()
      })
    const isOld = ({ publishedAt }: Item): boolean => this.#isFirst || publishedAt < this.#now - GAP_MS
    const groups = [changed.filter(isOld), changed.filter((item) => !isOld(item))] as const
    for (const [n, group] of groups.entries()) if (group.length > 0) await queue(() => this.#storeItems(group, n === 0))
    await this.#progress(items)
  }

  async #storeItems(items: readonly Item[], isPast: boolean): Promise<void> {
    const { db, state } = this.#parts
    const { source, at, url } = this.#poll
    const timing: Timing = { now: this.#writtenAt(), ingest: isPast ? 'backfill' : 'live', measured: true, isPast }
    const raw = { sha256: this.#sha256, at, url, parser: source.parser }
    const options = { source, items, isWhole: false, timing, raw, state, range: FULL_RANGE }
    const { fresh, revised, held, repeated, joined } = await storeItems(db, options, async (_, { complete }) => {
      if (!complete) this.#isComplete = false
    })
    this.#sum.fresh += fresh
    this.#sum.revised += revised
    this.#sum.held += held
    this.#sum.repeated += repeated
    this.#sum.joined += joined
  }

  async #progress(items: readonly Item[]): Promise<void> {
    if (!this.#history) return
    const { db, now } = this.#parts
    this.#history = {
      ...this.#history,
      items: this.#sum.items,
      fresh: await countBackfilled(db, this.#poll.source),
      oldest: earlier(this.#history.oldest, Math.min(...items.map(({ publishedAt }) => publishedAt))),
      updated_at: now(),
    }
    await writeHistory(db, this.#history)
  }

  /** Stores the poll, and counts what the list lacks: three lists without an item retract it. */
  async #finish(tx: Database): Promise<WriteResult> {
    const { state, now } = this.#parts
    const { source, at, url } = this.#poll
    await state.lockForWriting(tx)
    const missing = source.retracts && this.#leftOut === 0 ? await this.#findMissing(tx) : null
    const raw = { sha256: this.#sha256, at, url, parser: source.parser }
    const change = { fresh: [], revised: [], held: [], repeated: [], returned: [], counts: [], missing }
    const application = {
      source,
      change,
      raw,
      now: this.#writtenAt(),
      state,
      range: FULL_RANGE,
      descriptions: new Map(),
    }
    await applyChanges(tx, application)
    if (missing === null) await endAbsences(tx, source)
    await storeValidators(tx, this.#poll, this.#isComplete ? this.#sha256 : null)
    const { items, fresh } = this.#sum
    const detail = this.#leftOut === 0 ? null : `${this.#leftOut} skipped: without a key or a date`
    // The body is not kept: it is long, and the next one contains it.
    await insertPolls(tx, [pollRow(this.#poll, { outcome: 'new', detail, sha256: this.#sha256, items, fresh })])
    await noteWatched(tx, source, at)
    if (this.#history) {
      const finished = now()
      const pages = this.#history.pages + 1
      await writeHistory(tx, {
        ...this.#history,
        state: 'done',
        share: 1,
        pages,
        updated_at: finished,
        finished_at: finished,
      })
    }
    return { outcome: 'new', ...this.#sum }
  }

  /** Stored events that are newer than the oldest of the list and not in it; null if the list is not believed. */
  async #findMissing(tx: Database): Promise<number[] | null> {
    const rows = (await tx('potus_events as e')
      .join('potus_versions as v', 'v.seq', 'e.seq')
      .where('e.source', this.#poll.source.id)
      .where('e.published_at', '>', this.#oldest)
      .where('e.available_at', '<=', this.#now)
      .whereNull('v.superseded_at')
      .whereNot('v.status', 'retracted')
      .select('e.seq', 'e.source_key as key')) as { seq: number; key: string }[]
    return believedMissing(rows, this.#keys)
  }

  /** The time of what is written now. Reading a long list takes a while, in which windows close and answers are given. */
  #writtenAt(): number {
    return Math.max(this.#now, this.#parts.now())
  }

  async #heldSeqs(): Promise<ReadonlySet<number>> {
    const rows = (await this.#parts.db('potus_held').where({ source: this.#poll.source.id }).select('seq')) as {
      seq: number
    }[]
    return new Set(rows.map(({ seq }) => seq))
  }
}

async function countBackfilled(db: Database, { id }: Source): Promise<number> {
  const row = (await db('potus_events').where({ source: id, ingest: 'backfill' }).count('* as n').first()) as {
    n: number
  }
  return row.n
}

/** The versions of these items without their texts, by event id. */
async function storedVersions(db: Database, source: Source, items: readonly Item[]): Promise<Map<string, Stored[]>> {
  const rows = (await db('potus_events as e')
    .join('potus_versions as v', 'v.seq', 'e.seq')
    .whereIn(
      'e.id',
      items.map(({ key }) => eventId(source.id, key)),
    )
    .select('e.id', 'e.seq', 'v.status', 'v.content_hash as hash', 'v.superseded_at as superseded')) as Stored[]
  const found = new Map<string, Stored[]>()
  for (const row of rows) found.set(row.id, [...(found.get(row.id) ?? []), row])
  return found
}
