/**
 * What was watched while an answer's events happened: "nothing happened" is worth something only if somebody looked. A source
 * that fails, is late or had unreadable entries may have news that the answer lacks.
 */
import { type Access, NotHeld } from 'tollgate/plugin'
import type { PotusWatched } from '../../../schemas/types.d.ts'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import type { Source } from '../sources/source.ts'
import type { Span } from '../store/held-values.ts'
import { firstWatched, readWatched } from '../store/watch-spans.ts'
import { DAY, formatOrNull, type TimeRange } from '../time-range.ts'
import type { FeedParts } from './answer-envelope.ts'
import { type FeedStatus, GOOD, isLate, latestOf, type SourceFigures, statusAround } from './feed-health.ts'

/** What was watched in a range, as of a moment. */
export interface WatchedFeed {
  /** The part of the time of all sources in which they were watched; null for made-up and recorded data, and for no time. */
  coverageOf(range: TimeRange): number | null
  /** The field of an answer over this range. */
  shown(range: TimeRange): PotusWatched
}

/** The sources that are on, and how they are doing at a moment: all in the same order. */
export interface SourcesAtMoment {
  readonly enabled: readonly Source[]
  readonly figures: readonly SourceFigures[]
  readonly statuses: readonly FeedStatus[]
}

/** Reads what was watched in the range, and how the sources are doing at the moment. */
export async function readWatchedFeed(
  { sources, figures, context }: FeedParts,
  range: TimeRange,
  asOf: number,
): Promise<WatchedFeed> {
  const enabled = sources.filter((source) => source.enabled)
  const known = await figures.ofSources(enabled, asOf)
  const statuses = enabled.map(
    (source, n) => statusAround(source, known[n] as SourceFigures, asOf, context.dataMode).value,
  )
  const isOnline = context.dataMode === 'online'
  const spans = isOnline ? await figures.ofWatch(enabled, { from: range.from, until: asOf }) : null
  return watchedFeed(pollsOf({ enabled, figures: known, statuses }), spans, asOf)
}

/** What the fields of an answer say of the polls: the same as long as the figures and statuses of the sources are. */
export type Polls = Omit<PotusWatched, 'coverage'>

/** Says when sources were polled last, and which of them are late. */
export function pollsOf({ enabled, figures, statuses }: SourcesAtMoment): Polls {
  const last = figures.map((own) => latestOf(own.last, GOOD))
  const late = enabled.flatMap(({ id }, n) => {
    const status = statuses[n] as FeedStatus
    return isLate(status) ? [{ id, status, last_success: formatOrNull(last[n] ?? null) }] : []
  })
  const newest = Math.max(...last.map((at) => at ?? -Infinity))
  return {
    sources: enabled.length,
    sources_late: late.length,
    newest_poll: Number.isFinite(newest) ? formatMilliseconds(newest) : null,
    late,
  }
}

/**
 * Says what was watched until a moment.
 *
 * @param spans when each source was watched; null for made-up and recorded data
 */
export function watchedFeed(polls: Polls, spans: readonly Span[] | null, asOf: number): WatchedFeed {
  const { sources, sources_late, newest_poll, late } = polls
  const coverageOf = ({ from, to }: TimeRange): number | null => {
    const end = Math.min(to, asOf)
    if (!spans || end <= from || sources === 0) return null
    const covered = spans.reduce((sum, span) => sum + overlap(span, from, end), 0)
    return Math.floor((covered / (sources * (end - from))) * 1e4) / 1e4
  }
  return {
    coverageOf,
    shown: (range) => ({ sources, sources_late, coverage: coverageOf(range), newest_poll, late }),
  }
}

const overlap = (span: Span, from: number, to: number): number =>
  Math.max(0, Math.min(span.until, to) - Math.max(span.from, from))

/** Least coverage with which an answer without events is sold, unless the settings of the product say otherwise. */
export const EMPTY_COVERAGE = 0.9

/**
 * Throws NotHeld if an answer without events over this time is worth nothing: no source was watched, or so few for so little of
 * the time that it is not sold. The error names the nearest time that was watched well enough.
 *
 * @param step windows begin at its multiples
 * @param until end of the last window that has closed
 */
export async function assertWatched(
  { db, sources, emptyCoverage }: FeedParts,
  watched: WatchedFeed,
  range: TimeRange,
  { access, step, until }: { readonly access: Access; readonly step: number; readonly until: number },
): Promise<void> {
  const coverage = watched.coverageOf(range)
  if (coverage === null || (coverage > 0 && (access.kind !== 'payment' || coverage >= emptyCoverage))) return
  const enabled = sources.filter((source) => source.enabled)
  const first = (await firstWatched(db, enabled)) ?? until
  const around = Math.max(first, Math.min(range.from, until))
  const spans = await readWatched(db, enabled, {
    from: around - SEARCHED_MS,
    until: Math.min(around + SEARCHED_MS, until),
  })
  const nearest = nearestWatched(spans, Math.max(1, Math.ceil(emptyCoverage * enabled.length)), range, step)
  const span = `from ${formatMilliseconds(range.from)} to ${formatMilliseconds(range.to)}`
  const why =
    coverage === 0
      ? `No source was watched ${span}, and nothing was found.`
      : `Only ${percent(coverage)} of the time of all sources was watched ${span}, and nothing was found. An answer without items is sold from ${percent(emptyCoverage)} on.`
  throw new NotHeld(
    `${why} Nothing was charged.`,
    nearest && { start: new Date(nearest.from), end: new Date(nearest.to) },
  )
}

/** How far away the nearest time is looked for: twice the longest range that may be asked for. */
const SEARCHED_MS = 62 * DAY

/** @example percent(0.0141) // "1.41 %" */
const percent = (share: number): string => `${Math.round(share * 1e4) / 100} %`

/**
 * The time nearest to a range, at most as long, in which `count` sources were watched at every moment. It begins and ends at
 * multiples of `step`. Null if there is none.
 *
 * @param spans in which a source was watched, of all sources
 */
export function nearestWatched(
  spans: readonly Span[],
  count: number,
  { from, to }: TimeRange,
  step: number,
): TimeRange | null {
  const edges = spans.flatMap((span) => [
    { at: span.from, change: 1 },
    { at: span.until, change: -1 },
  ])
  // A span that begins where another one ends leaves no gap.
  edges.sort((a, b) => a.at - b.at || b.change - a.change)
  const length = Math.max(1, Math.ceil((to - from) / step)) * step
  const wanted = Math.floor(from / step) * step
  const distanceTo = (found: TimeRange): number => Math.max(0, found.from - to, from - found.to)
  let nearest: TimeRange | null = null
  let watching = 0
  let begun = 0
  for (const { at, change } of edges) {
    const before = watching
    watching += change
    if (before < count && watching >= count) begun = at
    if (before < count || watching >= count) continue
    const [first, end] = [Math.ceil(begun / step) * step, Math.floor(at / step) * step]
    if (first >= end) continue
    const start = Math.min(Math.max(first, wanted), Math.max(first, end - length))
    const found = { from: start, to: Math.min(end, start + length) }
    if (!nearest || distanceTo(found) < distanceTo(nearest)) nearest = found
  }
  return nearest
}
