/** Rows of the store as the records that the API returns. */
import type { DataMode } from 'tollgate/plugin'
import type { Mention } from '../entities/entity-recognition.ts'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import { formatOrNull } from '../time-range.ts'
import { type Grounds, type Relevance, finalRelevance } from '../entities/relevance.ts'
import type { Source, Media } from '../sources/source.ts'
import type { Member, EventReader, EventAtMoment } from '../store/event-reader.ts'
import type { Asset } from '../entities/topics.ts'

/** The origin of the records in this store. */
export interface RecordContext {
  readonly dataMode: DataMode
  /** Milliseconds that a replay shifts all times by, or null. */
  readonly shift: () => number | null
  readonly sources: ReadonlyMap<string, Source>
}

/** A row with its cluster and relevance as they were known at a moment. */
export interface KnownEvent {
  readonly row: EventAtMoment
  readonly members: readonly Member[]
  /** True if it is the first record of its cluster. */
  readonly leads: boolean
  /** True if its source has taken it back, and no earlier copy of it was: the record that says so to readers of unique items. */
  readonly reportsDeletion: boolean
  readonly relevance: Relevance
  readonly topics: readonly string[]
  readonly entities: readonly Mention[]
  readonly assets: readonly Asset[]
}

/**
 * Adds clusters and relevance as of `asOf`. `until` may give each row an earlier moment of its own, so that a closed window
 * does not change when a second source confirms the news later.
 */
export async function knownEvents(
  reader: EventReader,
  rows: readonly EventAtMoment[],
  asOf: number,
  { sources }: RecordContext,
  until: (row: EventAtMoment) => number = () => asOf,
): Promise<KnownEvent[]> {
  const clusters = new Map<string, Member[]>()
  for (const member of await reader.members(
    rows.map(({ cluster }) => cluster),
    asOf,
  ))
    clusters.set(member.cluster, [...(clusters.get(member.cluster) ?? []), member])
  const deletions = await firstDeletions(reader, rows, clusters, asOf)
  return rows.map((row) => {
    const members = (clusters.get(row.cluster) ?? []).filter((member) => member.available_at <= until(row))
    const leads = members[0]?.seq === row.seq
    const publishers = new Set(members.map(({ source }) => sources.get(source)?.publisher ?? source))
    return {
      row,
      members,
      leads,
      reportsDeletion: deletions.has(row),
      relevance: finalRelevance(JSON.parse(row.grounds) as Grounds, leads, publishers.size > 1),
      topics: JSON.parse(row.topics) as string[],
      entities: JSON.parse(row.entities) as Mention[],
      assets: JSON.parse(row.assets) as Asset[],
    }
  })
}

/** The retracted rows of which no earlier copy in the cluster is retracted, too. Reads nothing if no row is retracted. */
async function firstDeletions(
  reader: EventReader,
  rows: readonly EventAtMoment[],
  clusters: ReadonlyMap<string, readonly Member[]>,
  asOf: number,
): Promise<ReadonlySet<EventAtMoment>> {
  const retracted = rows.filter(({ status }) => status === 'retracted')
  const earlier = retracted.map((row) => {
    const seqs = (clusters.get(row.cluster) ?? []).map(({ seq }) => seq)
    return seqs.slice(0, seqs.indexOf(row.seq))
  })
  const posts = await reader.retracted(earlier.flat(), asOf)
  return new Set(retracted.filter((row, n) => !earlier[n]?.some((seq) => posts.get(seq) === row.post)))
}

/** Longest text in a record, in characters. */
const MAX_TEXT = 20_000

/** The full record (potus/1). */
export function eventRecord(
  { row, members, leads, relevance, topics, entities, assets }: KnownEvent,
  { dataMode, shift, sources }: RecordContext,
) {
  const shiftMs = shift()
  const source = sources.get(row.source)
  return {
    id: row.id,
    seq: row.seq,
    source: row.source,
    source_key: row.source_key,
    kind: row.kind,
    status: row.status,
    title: row.title,
    text: beginningOf(row.text, MAX_TEXT),
    text_truncated: row.text.length > MAX_TEXT,
    lang: row.lang,
    url: row.url,
    media: JSON.parse(row.media) as Media[],
    occurred_at: formatOrNull(row.occurred_at),
    published_at: formatMilliseconds(row.published_at),
    published_precision: row.precision,
    first_seen_at: formatMilliseconds(row.first_seen_at),
    available_at: formatMilliseconds(row.available_at),
    latency_seconds: row.latency_ms === null ? null : row.latency_ms / 1000,
    latency_ms: row.latency_ms,
    origin: row.ingest,
    relevance,
    topics,
    entities,
    assets,
    cluster: {
      id: row.cluster,
      role: leads ? ('lead' as const) : ('member' as const),
      size: members.length,
      sources: [...new Set(members.map((member) => member.source))],
    },
    revision: row.revision,
    revised_at: formatOrNull(row.revised_at),
    content_hash: row.content_hash,
    provenance: {
      raw_sha256: row.raw_sha256 || null,
      fetched_at: formatMilliseconds(row.fetched_at),
      feed_url: row.feed_url,
      parser: row.parser,
      prev: row.prev,
      record_hash: row.record_hash,
      ingest: row.ingest,
      licence: source?.licence ?? '',
      attribution: source?.attribution ?? '',
    },
    data_mode: dataMode,
    ...(shiftMs === null
      ? {}
      : {
          replay: {
            shift_ms: shiftMs,
            shift_seconds: shiftMs / 1000,
            original_available_at: formatMilliseconds(row.available_at - shiftMs),
          },
        }),
  }
}

/** The beginning of a text. It never ends with half of a character, because strict readers of JSON reject that. */
const beginningOf = (text: string, length: number): string => text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '')

/** Longest excerpt, in characters. */
const EXCERPT = 280

/** The short form of an event that a window contains. */
export function eventSummary({ row, leads, relevance, topics, assets }: KnownEvent) {
  return {
    id: row.id,
    seq: row.seq,
    source: row.source,
    kind: row.kind,
    status: row.status,
    title: row.title,
    excerpt: row.text.length > EXCERPT ? `${beginningOf(row.text, EXCERPT - 1)}…` : row.text,
    url: row.url,
    available_at: formatMilliseconds(row.available_at),
    relevance: { score: relevance.score, band: relevance.band },
    topics,
    assets: assets.map(({ id }) => id),
    cluster: { id: row.cluster, role: leads ? ('lead' as const) : ('member' as const) },
    revision: row.revision,
  }
}
