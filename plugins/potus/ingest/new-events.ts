/** Stores the items of a poll: compares them with the store, annotates them, and writes them in batches of 100. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Database } from 'tollgate/plugin'
import { annotate, type Annotations } from '../entities/relevance.ts'
import type { Item, Source } from '../sources/source.ts'
import {
  addToEventCount,
  type Outcome,
  type EventRow,
  insertAll,
  type MentionRow,
  type VersionRow,
} from '../store/tables.ts'
import { candidateOf, findDuplicate } from './clusters.ts'
import { compareWithStore, contentHash, eventId, type FeedChanges } from './feed-changes.ts'
import { applyChanges, buildMentionRows, type Provenance, buildVersionRow } from './revisions.ts'
import type { WriterState, SequenceRange } from './writer-state.ts'

/** How the time at which an item became available is determined. */
export interface Timing {
  /** Time of writing. */
  readonly now: number
  /** When each item was seen, if they were seen one by one. */
  readonly seenAt?: (item: Item) => number
  readonly ingest: 'live' | 'backfill'
  /** False if a recording does not say when an item was first fetched. Such an item has no latency. */
  readonly measured: boolean
  /** True for items of long ago, which are compared with what was published around them. */
  readonly isPast?: boolean
}

export interface WriteResult {
  readonly outcome: Outcome
  readonly items: number
  readonly fresh: number
  readonly revised: number
  readonly held: number
  readonly repeated: number
  readonly joined: number
}

export interface StoreOptions {
  readonly source: Source
  /** Oldest first. */
  readonly items: readonly Item[]
  /** True if no entry of the body was skipped, so that events that are not in it count as missing. */
  readonly isWhole: boolean
  readonly timing: Timing
  readonly raw: Provenance
  readonly state: WriterState
  readonly range: SequenceRange
}

/** Passed to `finish` in the last transaction, which also stores the poll. */
export interface StoreOutcome {
  /** True if no item was postponed to a later poll. */
  readonly complete: boolean
  readonly fresh: number
  /** What the poll says about known events. */
  readonly change: FeedChanges
}

/** Events per transaction. */
const BATCH = 100

/**
 * Stores the items that are due. An item dated ahead of the clock is postponed until its time comes, so that sequence
 * numbers and times of availability rise together.
 */
export async function storeItems(
  db: Database,
  { source, items, isWhole, timing, raw, state, range }: StoreOptions,
  finish: (tx: Database, taken: StoreOutcome) => Promise<void>,
): Promise<WriteResult> {
  const due = items.filter((item) => item.precision === 'day' || item.publishedAt <= timing.now)
  const complete = due.length === items.length
  const within = { complete: complete && isWhole, range, at: timing.now }
  let change = await compareWithStore(db, source, due, within)
  const descriptions = await annotateAll(source, [...change.fresh, ...change.revised.map(({ item }) => item)])
  const shared = { source, raw, state, range, descriptions }
  let pending = change.fresh
  let [fresh, joined] = [0, 0]
  for (;;) {
    const result = await db.transaction(async (tx) => {
      if (!(await state.lockForWriting(tx))) {
        change = await compareWithStore(tx, source, due, within)
        pending = change.fresh
      }
      const portion = pending.slice(0, BATCH)
      const inserted = await insertEvents(tx, { ...shared, items: portion, timing })
      if (pending.length > BATCH) return { ...inserted, count: portion.length, applied: null }
      const applied = await applyChanges(tx, { ...shared, change, now: timing.now })
      await finish(tx, { complete, fresh: fresh + portion.length, change })
      return { ...inserted, count: portion.length, applied }
    })
    pending = pending.slice(BATCH)
    fresh += result.count
    joined += result.joined
    if (result.applied) return { outcome: 'new', items: items.length, fresh, joined, ...result.applied }
  }
}

/**
 * Annotates items before the transaction, and yields to the event loop after each: a long executive order takes tens of
 * milliseconds.
 */
async function annotateAll(source: Source, items: readonly Item[]): Promise<Map<Item, Annotations>> {
  const descriptions = new Map<Item, Annotations>()
  for (const item of items) {
    descriptions.set(item, annotate(item, source))
    await yieldToEventLoop()
  }
  return descriptions
}

export interface Insertion extends Omit<StoreOptions, 'isWhole'> {
  readonly descriptions: ReadonlyMap<Item, Annotations>
}

const DAY_MS = 86_400_000

/** Inserts the items as events, each in its cluster. Returns how many joined an existing cluster. */
async function insertEvents(
  db: Database,
  { source, items, timing, raw, state, range, descriptions }: Insertion,
): Promise<{ readonly joined: number }> {
  if (items.length === 0) return { joined: 0 }
  const events: EventRow[] = []
  const versions: VersionRow[] = []
  const mentions: MentionRow[] = []
  const engagement: object[] = []
  const past = timing.isPast ? await state.nearby(db, range, items) : null
  const others = past ?? (await state.recent(db, range, timing.now))
  let { seq, appeared } = await state.rangeEnd(db, range)
  let joined = 0
  for (const item of items) {
    seq += 1
    if (seq > range.last) throw new RangeError('the range of sequence numbers is full')
    const seenAt = timing.seenAt?.(item) ?? raw.at
    const availableAt = availableFrom(item, { ...timing, now: timing.seenAt ? seenAt : timing.now, appeared })
    if (timing.ingest === 'live') appeared = availableAt
    const id = eventId(source.id, item.key)
    const own = candidateOf(item, source, availableAt, seq, `clu_${id.slice(4, 14)}`)
    const duplicate = findDuplicate(own, others)
    if (duplicate) joined += 1
    const cluster = duplicate?.cluster ?? own.cluster
    ;(past ?? state).add({ ...own, cluster })
    const isTimed = timing.ingest === 'live' && timing.measured && item.precision !== 'day'
    events.push({
      seq,
      id,
      source: source.id,
      source_key: item.key,
      url: item.url,
      published_at: item.publishedAt,
      precision: item.precision,
      occurred_at: item.occurredAt,
      first_seen_at: seenAt,
      available_at: availableAt,
      latency_ms: isTimed ? Math.min(seenAt - item.publishedAt, 2 ** 31 - 1) : null,
      ingest: timing.ingest,
      cluster,
      post: item.post,
      signed_on: item.signedOn,
    })
    const numbered = { seq, version: 1, revision: 1, status: 'active', knownAt: availableAt, revisedAt: null } as const
    const description = descriptions.get(item) as Annotations
    versions.push(
      await buildVersionRow(
        db,
        { source: source.id, raw, state, range },
        numbered,
        item,
        contentHash(item),
        description,
      ),
    )
    mentions.push(...buildMentionRows(numbered, availableAt, description))
    if (item.counts) engagement.push({ seq, observed_at: seenAt, ...item.counts })
  }
  await insertAll(db, 'potus_events', events)
  await addToEventCount(db, events.length)
  await insertAll(db, 'potus_versions', versions)
  await insertAll(db, 'potus_mentions', mentions)
  await insertAll(db, 'potus_engagement', engagement)
  state.setRangeEnd({ seq, appeared })
  return { joined }
}

/**
 * When an item can be served for the first time.
 *
 * Live: not before it was written, whatever the source claims, and not before `appeared`, when the last live record became
 * available. So numbers and times rise together even if another process has a clock that is ahead, and a client that
 * follows by number misses nothing. Backfill: when it was published (at the end of the day if only the day is known), and
 * never later than now.
 */
function availableFrom(
  { publishedAt, precision }: Item,
  { now, ingest, appeared }: Pick<Timing, 'now' | 'ingest'> & { readonly appeared: number },
): number {
  if (ingest === 'live') return Math.max(appeared, now, precision === 'day' ? 0 : publishedAt)
  const published = precision === 'day' ? Math.floor(publishedAt / DAY_MS) * DAY_MS + DAY_MS - 1 : publishedAt
  return Math.min(published, now)
}
