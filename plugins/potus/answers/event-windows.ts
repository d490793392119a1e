/**
 * Closed windows of one and fifteen minutes, aligned to UTC and keyed by `available_at`. A window is a pure function of
 * the events, so it is the same after a restart. It is published a short grace period after its end. After that only a
 * new version of one of its events, or an event that is back-filled, changes it and raises its revision.
 */
import type { CursorPosition } from './event-cursor.ts'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import { MINUTE, type TimeRange } from '../time-range.ts'
import type { EventReader, EventAtMoment } from '../store/event-reader.ts'
import { eventSummary, type KnownEvent, knownEvents, type RecordContext } from './event-record.ts'

export interface Granularity<Name extends string = '1m' | '15m'> {
  readonly name: Name
  readonly size: number
  /** Milliseconds after the end of the window, in which the writer finishes pending items. */
  readonly grace: number
}

export const ONE_MINUTE: Granularity<'1m'> = { name: '1m', size: MINUTE, grace: 30_000 }
export const QUARTER: Granularity<'15m'> = { name: '15m', size: 15 * MINUTE, grace: 60_000 }

export interface Window {
  readonly start: number
  readonly events: readonly KnownEvent[]
}

/** End of the last window that is closed at `asOf`. */
export function lastClosedEnd(asOf: number, { size, grace }: Granularity): number {
  return Math.floor((asOf - grace) / size) * size
}

/** The windows that begin in a range and are closed at `asOf`, from the start of the first to the end of the last; empty if there are none. */
export function closedWindows({ from, to }: TimeRange, asOf: number, granularity: Granularity): TimeRange {
  const { size } = granularity
  const startAfter = (time: number): number => Math.ceil(time / size) * size
  return { from: startAfter(from), to: Math.min(startAfter(to), lastClosedEnd(asOf, granularity)) }
}

/** When a window is published. */
const closeOf = (start: number, { size, grace }: Granularity): number => start + size + grace

const BATCH = 250

/** Reads up to `limit` windows that begin in the range, oldest first, and the position of the next page. */
export async function readWindows(
  reader: EventReader,
  context: RecordContext,
  granularity: Granularity,
  { from, to }: TimeRange,
  asOf: number,
  {
    after,
    limit,
    withEmpty,
  }: { readonly after: CursorPosition | null; readonly limit: number; readonly withEmpty: boolean },
): Promise<{ readonly windows: readonly Window[]; readonly next: CursorPosition | null }> {
  const { size } = granularity
  const startOf = (time: number): number => Math.floor(time / size) * size
  // The cursor is the buyer's to write, so its position may be no end of a window.
  const begin = Math.max(0, after ? after.availableAt + 1 : from)
  const { from: first, to: end } = closedWindows({ from: begin, to }, asOf, granularity)
  const reach = withEmpty ? Math.min(end, first + limit * size) : end
  const rows: EventAtMoment[] = []
  const starts: number[] = []
  let position: CursorPosition | null = null
  for (let more = first < reach; more;) {
    const batch: EventAtMoment[] = await reader.scan({
      asOf,
      order: 'asc',
      from: first,
      to: reach,
      after: position,
      limit: BATCH,
    })
    for (const row of batch) {
      const start = startOf(row.available_at)
      if (starts.at(-1) !== start) starts.push(start)
      rows.push(row)
      position = { availableAt: row.available_at, seq: row.seq }
    }
    more = batch.length === BATCH && starts.length <= limit
  }
  const shown = withEmpty ? allStarts(first, reach, size) : starts.slice(0, limit)
  const closesAt = (row: EventAtMoment): number => closeOf(startOf(row.available_at), granularity)
  const inside = rows.filter(({ available_at: at }) => shown.length > 0 && at < (shown.at(-1) as number) + size)
  const events = await knownEvents(reader, inside, asOf, context, closesAt)
  const byStart = new Map<number, KnownEvent[]>()
  for (const one of events) {
    const start = startOf(one.row.available_at)
    byStart.set(start, [...(byStart.get(start) ?? []), one])
  }
  const isMore = withEmpty ? reach < end : starts.length > limit
  const last = shown.at(-1)
  return {
    windows: shown.map((start) => ({ start, events: byStart.get(start) ?? [] })),
    next: isMore && last !== undefined ? { availableAt: last + size - 1, seq: Number.MAX_SAFE_INTEGER } : null,
  }
}

function allStarts(first: number, end: number, size: number): number[] {
  return Array.from({ length: Math.max(0, Math.ceil((end - first) / size)) }, (_, at) => first + at * size)
}

/** The fields that windows of both sizes have. `coverage` is the part of the time of all sources in which they were watched. */
function windowSummary<Name extends '1m' | '15m'>(
  { start, events }: Window,
  coverage: number | null,
  granularity: Granularity<Name>,
) {
  const { name, size } = granularity
  const closed = closeOf(start, granularity)
  return {
    window: {
      start: formatMilliseconds(start),
      end: formatMilliseconds(start + size),
      granularity: name,
      revision: events.reduce((sum, { row }) => sum + row.version - (row.first_seen_at > closed ? 0 : 1), 0),
    },
    coverage,
    count: events.length,
    clusters: new Set(events.map(({ row }) => row.cluster)).size,
    max_relevance: events.length === 0 ? null : Math.max(...events.map(({ relevance }) => relevance.score)),
    by_kind: tally(events.map(({ row }) => row.kind)),
    topics: tally(events.flatMap(({ topics }) => topics)),
    assets: tally(events.flatMap(({ assets }) => assets.map(({ id }) => id))),
  }
}

/** A one-minute window with a summary of each event. */
export function minuteWindow(window: Window, coverage: number | null) {
  return { ...windowSummary(window, coverage, ONE_MINUTE), events: window.events.map(eventSummary) }
}

/** A fifteen-minute window with counts by source and the ids of its events. */
export function quarterWindow(window: Window, coverage: number | null) {
  const rows = window.events.map(({ row }) => row)
  const sources = tally(rows.map(({ source }) => source))
  return { ...windowSummary(window, coverage, QUARTER), sources, event_ids: rows.map(({ id }) => id) }
}

/** Counts how often each name occurs. */
function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
