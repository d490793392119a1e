/**
 * Reads events as of a moment. An event is visible if it was available by then, in the version that was valid then, and
 * with the members of its cluster that were available then.
 */
import type { Database } from 'tollgate/plugin'
import type { CursorPosition } from '../answers/event-cursor.ts'
import { EVENT_COUNT, type EventRow, type VersionRow } from './tables.ts'

export type EventAtMoment = EventRow & Omit<VersionRow, 'seq' | 'source'>

/** A member of a cluster that was available at the moment. */
export interface Member {
  readonly cluster: string
  readonly seq: number
  readonly id: string
  readonly source: string
  readonly available_at: number
}

export interface Scan {
  readonly asOf: number
  readonly order: 'asc' | 'desc'
  readonly from: number
  /** Exclusive. */
  readonly to: number
  readonly after: CursorPosition | null
  /** An entity id or "topic:..." that every event must name. */
  readonly term?: string | undefined
  readonly source?: string | undefined
  readonly limit: number
}

export interface EventReader {
  /** Up to `limit` events in order of availability, by index. The cost does not depend on the size of the store. */
  scan(scan: Scan): Promise<EventAtMoment[]>
  /** Live events numbered above `seq`, oldest first. */
  since(seq: number, asOf: number, limit: number): Promise<EventAtMoment[]>
  /** When the newest live event numbered at most `seq` became available; null if there is none. */
  availableBefore(seq: number, asOf: number): Promise<number | null>
  find(where: { readonly id: string } | { readonly seq: number }, asOf: number): Promise<EventAtMoment | null>
  /** Every version that was known by `asOf`, oldest first. */
  versions(seq: number, asOf: number): Promise<VersionRow[]>
  members(clusters: readonly string[], asOf: number): Promise<Member[]>
  /** Those of these events that are retracted: the post or document of each, by its number. */
  retracted(seqs: readonly number[], asOf: number): Promise<ReadonlyMap<number, string | null>>
  /** Events available in [from, to]. */
  count(from: number, to: number): Promise<number>
  /** All events available by `asOf`. The cost depends on the number of later events, not on the size of the store. */
  countAll(asOf: number): Promise<number>
  /** When the newest event became available; null if there is none. */
  newest(asOf: number): Promise<number | null>
  /** Number of the newest live event. */
  lastSeq(asOf: number): Promise<number>
}

const EVENT = ['seq', 'id', 'source', 'source_key', 'url', 'published_at', 'precision', 'occurred_at', 'first_seen_at']
const MORE = ['available_at', 'latency_ms', 'ingest', 'cluster', 'post', 'signed_on']
const VERSION = [
  'version',
  'revision',
  'status',
  'known_at',
  'superseded_at',
  'revised_at',
  'kind',
  'title',
  'text',
  'lang',
]
const ABOUT = ['media', 'topics', 'entities', 'assets', 'grounds', 'content_hash']
const ORIGIN = ['prev', 'record_hash', 'raw_sha256', 'fetched_at', 'feed_url', 'parser']
const COLUMNS = [
  ...[...EVENT, ...MORE].map((name) => `e.${name}`),
  ...[...VERSION, ...ABOUT, ...ORIGIN].map((name) => `v.${name}`),
]

export function createReader(db: Database): EventReader {
  return new DatabaseEventReader(db)
}

class DatabaseEventReader implements EventReader {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  async scan({ asOf, order, from, to, after, term, source, limit }: Scan): Promise<EventAtMoment[]> {
    const table = term === undefined ? 'e' : 'm'
    // The position of the last page narrows the range, so that the index scan starts there.
    const first = after && order === 'asc' ? Math.max(from, after.availableAt) : from
    const end = after && order === 'desc' ? Math.min(to, after.availableAt + 1) : to
    const query = this.#validAt(asOf)
      .where(`${table}.available_at`, '>=', first)
      .where(`${table}.available_at`, '<', Math.min(end, asOf + 1))
      .orderBy([
        { column: `${table}.available_at`, order },
        { column: `${table}.seq`, order },
      ])
      .limit(limit)
      .select(COLUMNS)
    if (term !== undefined)
      void query
        .join('potus_mentions as m', (on) => void on.on('m.seq', 'e.seq').andOn('m.version', 'v.version'))
        .where('m.term', term)
    if (source !== undefined) void query.where('e.source', source)
    if (after)
      void query.whereRaw(`(${table}.available_at, ${table}.seq) ${order === 'asc' ? '>' : '<'} (?, ?)`, [
        after.availableAt,
        after.seq,
      ])
    const rows: unknown = await query
    return rows as EventAtMoment[]
  }

  async since(seq: number, asOf: number, limit: number): Promise<EventAtMoment[]> {
    const rows: unknown = await this.#validAt(asOf)
      .where('e.seq', '>', seq)
      .where('e.available_at', '<=', asOf)
      .where('e.ingest', 'live')
      .orderBy('e.seq')
      .limit(limit)
      .select(COLUMNS)
    return rows as EventAtMoment[]
  }

  async availableBefore(seq: number, asOf: number): Promise<number | null> {
    const row = (await this.#db('potus_events')
      .where('seq', '<=', seq)
      .where('available_at', '<=', asOf)
      .where('ingest', 'live')
      .orderBy('seq', 'desc')
      .first('available_at as at')) as { at: number } | undefined
    return row?.at ?? null
  }

  async find(where: { readonly id: string } | { readonly seq: number }, asOf: number): Promise<EventAtMoment | null> {
    const [column, value] = 'id' in where ? ['e.id', where.id] : ['e.seq', where.seq]
    const row: unknown = await this.#validAt(asOf)
      .where(column, value)
      .where('e.available_at', '<=', asOf)
      .first(COLUMNS)
    return (row as EventAtMoment | undefined) ?? null
  }

  async versions(seq: number, asOf: number): Promise<VersionRow[]> {
    return this.#db<VersionRow>('potus_versions').where({ seq }).where('known_at', '<=', asOf).orderBy('version')
  }

  async members(clusters: readonly string[], asOf: number): Promise<Member[]> {
    if (clusters.length === 0) return []
    return this.#db<EventRow>('potus_events')
      .whereIn('cluster', [...new Set(clusters)])
      .where('available_at', '<=', asOf)
      .orderBy(['available_at', 'seq'])
      .select('cluster', 'seq', 'id', 'source', 'available_at')
  }

  async retracted(seqs: readonly number[], asOf: number): Promise<ReadonlyMap<number, string | null>> {
    if (seqs.length === 0) return new Map()
    const rows = (await this.#validAt(asOf)
      .whereIn('e.seq', [...new Set(seqs)])
      .where('v.status', 'retracted')
      .select('e.seq', 'e.post')) as { seq: number; post: string | null }[]
    return new Map(rows.map(({ seq, post }) => [seq, post]))
  }

  async count(from: number, to: number): Promise<number> {
    const row = (await this.#db('potus_events').whereBetween('available_at', [from, to]).count('* as n').first()) as {
      n: number
    }
    return row.n
  }

  async countAll(asOf: number): Promise<number> {
    // One statement, so that both numbers are of the same moment.
    const later = this.#db.raw('(select count(*) from potus_events where available_at > ?)', [asOf])
    const row = (await this.#db('potus_notes')
      .where({ name: EVENT_COUNT })
      .first(this.#db.raw('cast(value as bigint) - ? as n', [later]))) as { n: number } | undefined
    return row?.n ?? 0
  }

  async newest(asOf: number): Promise<number | null> {
    const row = (await this.#db('potus_events')
      .where('available_at', '<=', asOf)
      .max('available_at as at')
      .first()) as {
      at: number | null
    }
    return row.at
  }

  async lastSeq(asOf: number): Promise<number> {
    const row = (await this.#db('potus_events')
      .where('available_at', '<=', asOf)
      .where('ingest', 'live')
      .orderBy([
        { column: 'available_at', order: 'desc' },
        { column: 'seq', order: 'desc' },
      ])
      .first('seq')) as { seq: number } | undefined
    return row?.seq ?? 0
  }

  /** Events joined with the version that was valid at `asOf`. */
  #validAt(asOf: number) {
    return this.#db('potus_events as e')
      .join('potus_versions as v', 'v.seq', 'e.seq')
      .where('v.known_at', '<=', asOf)
      .where((open) => void open.whereNull('v.superseded_at').orWhere('v.superseded_at', '>', asOf))
  }
}
