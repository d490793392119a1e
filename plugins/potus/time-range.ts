/** Time constants and the time range of a query. Times inside the feed are milliseconds since 1970, UTC. */
import { InvalidInput } from 'tollgate/plugin'
import { formatMilliseconds, requireEpochMilliseconds } from '../lib/time/timestamps.ts'

export const MINUTE = 60_000
export const HOUR = 3_600_000
export const DAY = 86_400_000

/** RFC 3339 in UTC, or null. */
export function formatOrNull(time: number | null): string | null {
  return time === null ? null : formatMilliseconds(time)
}

export interface TimeRange {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

type Moment = string | number | undefined

/** The range of a query; `from` and `to` are the old names of `start` and `end`. */
export interface RangeQuery {
  readonly start?: Moment
  readonly end?: Moment
  readonly from?: Moment
  readonly to?: Moment
}

/** A range as answers show it, under its old names too. */
export function shownRange({ from, to }: TimeRange) {
  const [start, end] = [formatMilliseconds(from), formatMilliseconds(to)]
  return { start, end, from: start, to: end }
}

export interface RangeLimits {
  readonly asOf: number
  /** Longest range that may be asked for, or null for any length. */
  readonly longest: number | null
  /** Length of the range when `start` is missing; `longest` unless given. */
  readonly usual?: number
}

/**
 * The time range of a query. `end` defaults to just after `asOf`, `start` to the usual length before `end`. Throws
 * InvalidInput if the range is empty, reversed or too long.
 */
export function timeRange(query: RangeQuery, { asOf, longest, usual = longest ?? DAY }: RangeLimits): TimeRange {
  // Issues name the field that was sent.
  const startName = query.start === undefined && query.from !== undefined ? 'from' : 'start'
  const endName = query.end === undefined && query.to !== undefined ? 'to' : 'end'
  const { [startName]: start, [endName]: end } = query
  const to = end === undefined ? asOf + 1 : requireEpochMilliseconds(end, endName)
  const from = start === undefined ? Math.max(0, to - usual) : requireEpochMilliseconds(start, startName)
  if (from >= to) throw new InvalidInput(`must be before ${endName}`, ['query', startName])
  if (longest !== null && to - from > longest + 1)
    throw new InvalidInput(`is more than ${longest / HOUR} hours before ${endName}; ask in parts`, ['query', startName])
  return { from, to }
}
