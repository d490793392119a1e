/** Persons, organizations and places named in a time range, and how that differs from the range before. */
import type { Database } from 'tollgate/plugin'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import { DAY, type TimeRange } from '../time-range.ts'

export interface EntityQuery {
  readonly type?: string
  readonly q?: string
  readonly limit: number
  readonly min_count: number
}

interface Row {
  readonly term: string
  readonly type: string
  readonly name: string
  readonly events: number
  readonly mentions: number
  readonly days: number
  readonly first: number
  readonly last: number
  readonly first_seq: number
  readonly last_seq: number
}

/** Counts the entities of events available in the range by `asOf`. An event counts once, in its version of that time. */
export async function countEntities(
  db: Database,
  range: TimeRange,
  asOf: number,
  { type, q, limit, min_count }: EntityQuery,
) {
  const counted = ({ from, to }: TimeRange) => {
    const query = db('potus_mentions')
      .where('available_at', '>=', from)
      .where('available_at', '<', Math.min(to, asOf + 1))
      .where('known_at', '<=', asOf)
      .where((open) => void open.whereNull('superseded_at').orWhere('superseded_at', '>', asOf))
      .whereNot('type', 'topic')
      .groupBy('term')
    if (type !== undefined) void query.where({ type })
    return query
  }
  const rows = (await counted(range)
    .select('term')
    .max({ type: 'type', name: 'name', last: 'available_at', last_seq: 'seq' })
    .min({ first: 'available_at', first_seq: 'seq' })
    .count({ events: '*' })
    .sum({ mentions: 'count' })
    .countDistinct({ days: db.raw(`available_at / ${DAY}`) })) as unknown as Row[]
  const search = q?.toLowerCase()
  const matching = rows
    .filter(({ events }) => events >= min_count)
    .filter(({ name, term }) => search === undefined || `${name} ${term}`.toLowerCase().includes(search))
    .sort((a, b) => b.events - a.events || (a.term < b.term ? -1 : 1))
  const shown = matching.slice(0, limit)
  // Of a range that goes on, such as the present month, as much as has passed of it.
  const length = Math.max(0, Math.min(range.to, asOf + 1) - range.from)
  const before = (await counted({ from: Math.max(0, range.from - length), to: range.from })
    .whereIn(
      'term',
      shown.map(({ term }) => term),
    )
    .select('term')
    .count('* as n')) as { term: string; n: number }[]
  const earlier = new Map(before.map(({ term, n }) => [term, n]))
  const seqs = [...new Set(shown.flatMap((row) => [row.last_seq, row.first_seq]))]
  const ids = await idsOf(db, seqs)
  return {
    total: matching.length,
    items: shown.map((row) => {
      const count = row.events
      const previous = earlier.get(row.term) ?? 0
      return {
        id: row.term,
        type: row.type as 'person' | 'organization' | 'place',
        name: row.name,
        count,
        mentions: row.mentions,
        days: row.days,
        first_seen: formatMilliseconds(row.first),
        last_seen: formatMilliseconds(row.last),
        sample_event_ids: [...new Set([row.last_seq, row.first_seq])].flatMap((seq) => ids.get(seq) ?? []),
        count_before: previous,
        change: count - previous,
      }
    }),
  }
}

/** Event ids by sequence number. */
async function idsOf(db: Database, seqs: readonly number[]): Promise<Map<number, string>> {
  const ids = new Map<number, string>()
  for (let from = 0; from < seqs.length; from += 500) {
    const rows = (await db('potus_events')
      .whereIn('seq', seqs.slice(from, from + 500))
      .select('seq', 'id')) as {
      seq: number
      id: string
    }[]
    for (const { seq, id } of rows) ids.set(seq, id)
  }
  return ids
}
