/** What the archive holds of a range, and why it may hold nothing: older items are still being loaded, or there are none. */
import { NotHeld, Unavailable } from 'tollgate/plugin'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import type { Source } from '../sources/source.ts'
import type { EventReader } from '../store/event-reader.ts'
import type { HistoryRow } from '../store/histories.ts'
import type { TimeRange } from '../time-range.ts'
import type { FeedParts } from './answer-envelope.ts'

const RETRY_SECONDS = 60

/**
 * Throws if the archive holds nothing of a range, whatever the filters of the query: Unavailable with the progress while a load of
 * older items has not reached it, otherwise NotHeld with the nearest range that holds something.
 */
export async function assertHeld(
  { reader, figures, sources }: Pick<FeedParts, 'reader' | 'figures' | 'sources'>,
  range: TimeRange,
  asOf: number,
): Promise<void> {
  if ((await edge(reader, 'asc', range, asOf)) !== null) return
  const loads = await figures.ofHistories()
  const awaited = loads.filter((load) =>
    mayReach(
      load,
      sources.find(({ id }) => id === load.source),
      range,
      asOf,
    ),
  )
  throw awaited.length > 0 ? notReached(awaited, range, asOf) : await nothingHeld(reader, range, asOf)
}

/** When the first or the last event of a range became available; null if there is none. */
async function edge(
  reader: EventReader,
  order: 'asc' | 'desc',
  { from, to }: TimeRange,
  asOf: number,
): Promise<number | null> {
  const [row] = await reader.scan({ asOf, order, from, to, after: null, limit: 1 })
  return row?.available_at ?? null
}

/** Returns true if a load that is under way may still bring items of the range. Loads begin with the newest items. */
function mayReach({ state, oldest }: HistoryRow, source: Source | undefined, { from, to }: TimeRange, asOf: number) {
  if (state === 'done' || !source?.enabled || from > asOf) return false
  // The rows of a long list may come in any order.
  if (source.streamed) return true
  if (source.history === null) return false
  if (source.history.by === 'days' && to <= Date.parse(source.history.from)) return false
  return oldest === null || from < oldest
}

function notReached(loads: readonly HistoryRow[], { from, to }: TimeRange, asOf: number): Error {
  const reached = loads.map(({ source, oldest }) =>
    oldest === null ? `${source} has just begun` : `${source} has reached ${formatMilliseconds(oldest)}`,
  )
  const progress = loads.map(
    ({ share, oldest }) => share ?? (oldest === null ? 0 : Math.max(0, Math.min(1, (asOf - oldest) / (asOf - from)))),
  )
  const range = `from ${formatMilliseconds(from)} to ${formatMilliseconds(to)}`
  return new Unavailable(
    `The archive has nothing ${range} yet. Older items are still being loaded: ${reached.join(', ')}. Nothing was charged. GET /v1/potus shows the progress.`,
    RETRY_SECONDS,
    Math.min(...progress),
  )
}

/** The error for a range that holds nothing. Its nearest range is at most as long, and begins or ends with an event. */
async function nothingHeld(reader: EventReader, { from, to }: TimeRange, asOf: number): Promise<Error> {
  const whole = { from: 0, to: asOf + 1 }
  const [first, last] = [await edge(reader, 'asc', whole, asOf), await edge(reader, 'desc', whole, asOf)]
  if (first === null || last === null)
    return new NotHeld(
      'The archive is empty so far. GET /v1/potus shows what is being loaded. Nothing was charged.',
      null,
    )
  const before = await edge(reader, 'desc', { from: 0, to: from }, asOf)
  const after = await edge(reader, 'asc', { from: to, to: asOf + 1 }, asOf)
  const length = to - from
  const isBefore = after === null || (before !== null && from - before <= after - to)
  const end = isBefore ? (before ?? last) + 1 : Math.min(after + length, last + 1)
  const start = isBefore ? Math.max(first, end - length) : after
  const held = `it holds events from ${formatMilliseconds(first)} to ${formatMilliseconds(last)}`
  const range = `from ${formatMilliseconds(from)} to ${formatMilliseconds(to)}`
  return new NotHeld(`The archive has nothing ${range}; ${held}. Nothing was charged.`, {
    start: new Date(start),
    end: new Date(end),
  })
}
