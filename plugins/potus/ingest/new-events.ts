/** Items into the store: compared, described, and written a hundred at a time. */
import { setImmediate as breathe } from 'node:timers/promises'
import type { Database } from 'tollgate/plugin'
import { annotate, type Annotations } from '../entities/relevance.ts'
import type { Item, Source } from '../sources/source.ts'
import { type Outcome, type EventRow, insertAll, type MentionRow, type VersionRow } from '../store/tables.ts'
import { candidateOf, findDuplicate } from './clusters.ts'

import { compareWithStore, contentHash, eventId } from './feed-changes.ts'
import { applyChanges, buildMentionRows, type Provenance, buildVersionRow } from './revisions.ts'
import type { WriterState, SequenceRange } from './writer-state.ts'

/** How the time of an item's appearance is told. */
export interface Timing {
  /** The clock when the events are written. */
  readonly now: number
  /** Where each item was seen at a time of its own. */
  readonly seenAt?: (item: Item) => number
  readonly ingest: 'live' | 'backfill'
  /** False where a recording does not say when an item was first held: there is no latency then. */
  readonly measured: boolean
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
  /** Nothing in the body was left out, so what is not there is missing. */
  readonly isWhole: boolean
  readonly sight: Timing
  readonly raw: Provenance
  readonly memory: WriterState
  readonly stretch: SequenceRange
}

/** Told in the last transaction, which also keeps the poll. */
export interface StoreOutcome {
  /** Nothing was left for a later look. */
  readonly complete: boolean
  readonly fresh: number
}

const PORTION = 100

/**
 * Takes what is due. An item dated ahead of the clock stays where it is until its time comes, so that numbers and times
 * of appearance rise together.
 */
export async function storeItems(
  db: Database,
  { source, items, isWhole, sight, raw, memory, stretch }: StoreOptions,
  finish: (tx: Database, taken: StoreOutcome) => Promise<void>,
): Promise<WriteResult> {
  const due = items.filter((item) => item.precision === 'day' || item.publishedAt <= sight.now)
  const complete = due.length === items.length
  const within = { complete: complete && isWhole, stretch, at: sight.now }
  let change = await compareWithStore(db, source, due, within)
  const descriptions = await described(source, [...change.fresh, ...change.revised.map(({ item }) => item)])
  const shared = { source, raw, memory, stretch, descriptions }
  let pending = change.fresh
  let [fresh, joined] = [0, 0]
  for (;;) {
    const result = await db.transaction(async (tx) => {
      if (!(await memory.takeTurn(tx))) {
        change = await compareWithStore(tx, source, due, within)
        pending = change.fresh
      }
      const portion = pending.slice(0, PORTION)
      const inserted = await insertEvents(tx, { ...shared, items: portion, sight })
      if (pending.length > PORTION) return { ...inserted, count: portion.length, applied: null }
      const applied = await applyChanges(tx, { ...shared, change, now: sight.now })
      await finish(tx, { complete, fresh: fresh + portion.length })
      return { ...inserted, count: portion.length, applied }
    })
    pending = pending.slice(PORTION)
    fresh += result.count
    joined += result.joined
    if (result.applied) return { outcome: 'new', items: items.length, fresh, joined, ...result.applied }
  }
}

/** Worked out before the transaction, with room for others in between: a long order takes tens of milliseconds. */
async function described(source: Source, items: readonly Item[]): Promise<Map<Item, Annotations>> {
  const descriptions = new Map<Item, Annotations>()
  for (const item of items) {
    descriptions.set(item, annotate(item, source))
    await breathe()
  }
  return descriptions
}

/* --- New events into the store, each in its cluster. --- */

export interface Insertion {
  readonly source: Source
  /** Oldest first. */
  readonly items: readonly Item[]
  readonly sight: Timing
  readonly raw: Provenance
  readonly memory: WriterState
  readonly stretch: SequenceRange
  readonly descriptions: ReadonlyMap<Item, Annotations>
}

const DAY_MS = 86_400_000

/** Inserts the items and says how many joined a cluster that was there. */
export async function insertEvents(
  db: Database,
  { source, items, sight, raw, memory, stretch, descriptions }: Insertion,
): Promise<{ readonly joined: number }> {
  if (items.length === 0) return { joined: 0 }
  const events: EventRow[] = []
  const versions: VersionRow[] = []
  const mentions: MentionRow[] = []
  const engagement: object[] = []
  const recent = await memory.recent(db, stretch, sight.now)
  let seq = await memory.lastSeq(db, stretch)
  let appeared = await memory.lastAppearance(db, stretch)
  let joined = 0
  for (const item of items) {
    seq += 1
    if (seq > stretch.last) throw new RangeError('the stretch of sequence numbers is full')
    const seenAt = sight.seenAt?.(item) ?? raw.at
    const availableAt = availableFrom(item, { ...sight, now: sight.seenAt ? seenAt : sight.now, appeared })
    if (sight.ingest === 'live') appeared = availableAt
    const id = eventId(source.id, item.key)
    const own = candidateOf(item, source, availableAt, seq, `clu_${id.slice(4, 14)}`)
    const twin = findDuplicate(own, recent)
    if (twin) joined += 1
    const cluster = twin?.cluster ?? own.cluster
    memory.add({ ...own, cluster })
    const isTimed = sight.ingest === 'live' && sight.measured && item.precision !== 'day'
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
      ingest: sight.ingest,
      cluster,
      post: item.post,
      signed_on: item.signedOn,
    })
    const numbered = { seq, version: 1, revision: 1, status: 'active', knownAt: availableAt, revisedAt: null } as const
    const description = descriptions.get(item) as Annotations
    versions.push(
      await buildVersionRow(
        db,
        { source: source.id, raw, memory, stretch },
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
  await insertAll(db, 'potus_versions', versions)
  await insertAll(db, 'potus_mentions', mentions)
  await insertAll(db, 'potus_engagement', engagement)
  return { joined }
}

/**
 * When an item could be served first. Live: not before it was written, whatever the source claims, and not before the
 * live record that `appeared` last: where another process has a clock that is ahead, numbers and times still rise
 * together, and whoever follows by number passes nothing over. Back-fill: when it was published, at the end of the day
 * where only the day is known, and never later than now.
 */
function availableFrom(
  { publishedAt, precision }: Item,
  { now, ingest, appeared }: Pick<Timing, 'now' | 'ingest'> & { readonly appeared: number },
): number {
  if (ingest === 'live') return Math.max(appeared, now, precision === 'day' ? 0 : publishedAt)
  const published = precision === 'day' ? Math.floor(publishedAt / DAY_MS) * DAY_MS + DAY_MS - 1 : publishedAt
  return Math.min(published, now)
}
