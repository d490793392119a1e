/** New events into the store, each in its cluster. */
import type { Knex } from 'tollgate/plugin'
import { candidateOf, twinOf } from '../clusters.ts'
import type { Item } from '../item.ts'
import type { Source } from '../sources/source.ts'
import { type EventRow, insertAll, type MentionRow, type VersionRow } from '../store/rows.ts'
import type { Description } from './describe.ts'
import type { Memory } from './memory.ts'
import { contentHash, eventId } from './revise.ts'
import { mentionRows, type Raw, versionRow } from './versions.ts'
import type { Sight, Stretch } from './writer.ts'

export interface Insertion {
  readonly source: Source
  /** Oldest first. */
  readonly items: readonly Item[]
  readonly sight: Sight
  readonly raw: Raw
  readonly memory: Memory
  readonly stretch: Stretch
  readonly descriptions: ReadonlyMap<Item, Description>
}

const DAY_MS = 86_400_000

/** Inserts the items and says how many joined a cluster that was there. */
export async function insertEvents(
  db: Knex,
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
    const twin = twinOf(own, recent)
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
    const description = descriptions.get(item) as Description
    versions.push(
      await versionRow(db, { source: source.id, raw, memory, stretch }, numbered, item, contentHash(item), description),
    )
    mentions.push(...mentionRows(numbered, availableAt, description))
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
  { now, ingest, appeared }: Pick<Sight, 'now' | 'ingest'> & { readonly appeared: number },
): number {
  if (ingest === 'live') return Math.max(appeared, now, precision === 'day' ? 0 : publishedAt)
  const published = precision === 'day' ? Math.floor(publishedAt / DAY_MS) * DAY_MS + DAY_MS - 1 : publishedAt
  return Math.min(published, now)
}
