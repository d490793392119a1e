/**
 * What was watched while an answer's events happened: "nothing happened" is worth something only if somebody looked. A source
 * that fails, is late or had unreadable entries may have news that the answer lacks.
 */
import { NotHeld } from 'tollgate/plugin'
import type { PotusWatched } from '../../../schemas/types.d.ts'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import type { Span } from '../store/held-values.ts'
import { readWatched } from '../store/watch-spans.ts'
import { formatOrNull, type TimeRange } from '../time-range.ts'
import type { FeedParts } from './answer-envelope.ts'
import { GOOD, isLate, latestOf, type SourceFigures, statusAround } from './feed-health.ts'

/** What was watched in a range, as of a moment. */
export interface WatchedFeed {
  /** The part of the time of all sources in which they were watched; null for made-up and recorded data, and for no time. */
  coverageOf(range: TimeRange): number | null
  /** The field of an answer over this range. */
  shown(range: TimeRange): PotusWatched
}

/** Reads what was watched in the range, and how the sources are doing at the moment. */
export async function readWatchedFeed(
  { db, sources, figures, context }: FeedParts,
  range: TimeRange,
  asOf: number,
): Promise<WatchedFeed> {
  const enabled = sources.filter((source) => source.enabled)
  const known = await figures.ofSources(enabled, asOf)
  const isOnline = context.dataMode === 'online'
  const spans = isOnline ? await readWatched(db, enabled, { from: range.from, until: asOf }) : null
  const states = enabled.map((source, n) => {
    const own = known[n] as SourceFigures
    return { source, status: statusAround(source, own, asOf, context.dataMode).value, last: latestOf(own.last, GOOD) }
  })
  const watched = [...(spans?.values() ?? [])].flat()
  const coverageOf = ({ from, to }: TimeRange): number | null => {
    const end = Math.min(to, asOf)
    if (!isOnline || end <= from || enabled.length === 0) return null
    const covered = watched.reduce((sum, span) => sum + overlap(span, from, end), 0)
    return Math.floor((covered / (enabled.length * (end - from))) * 1e4) / 1e4
  }
  const late = states.filter(({ status }) => isLate(status))
  const newest = Math.max(...states.map(({ last }) => last ?? -Infinity))
  return {
    coverageOf,
    shown: (over) => ({
      sources: enabled.length,
      sources_late: late.length,
      coverage: coverageOf(over),
      newest_poll: Number.isFinite(newest) ? formatMilliseconds(newest) : null,
      late: late.map(({ source, status, last }) => ({
        id: source.id,
        status: status as 'late' | 'failing' | 'degraded',
        last_success: formatOrNull(last),
      })),
    }),
  }
}

const overlap = (span: Span, from: number, to: number): number =>
  Math.max(0, Math.min(span.until, to) - Math.max(span.from, from))

/** Throws NotHeld for a range without events in which nothing was watched: nobody knows whether anything happened. */
export function assertWatched(watched: WatchedFeed, range: TimeRange): void {
  if (watched.coverageOf(range) !== 0) return
  const span = `from ${formatMilliseconds(range.from)} to ${formatMilliseconds(range.to)}`
  throw new NotHeld(`No source was watched ${span}, and nothing is held of this time. Nothing was charged.`, null)
}
