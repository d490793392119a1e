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

export interface RangeLimits {
  readonly asOf: number
  /** Longest range that may be asked for, or null for any length. */
  readonly longest: number | null
  /** Length of the range when `from` is missing; `longest` unless given. */
  readonly usual?: number
}

/**
 * The time range of a query. `to` defaults to just after `asOf`, `from` to the usual length before `to`. Throws
 * InvalidInput if the range is empty, reversed or too long.
 */
export function timeRange(
  { from, to }: { readonly from?: string | number | undefined; readonly to?: string | number | undefined },
  { asOf, longest, usual = longest ?? DAY }: RangeLimits,
): TimeRange {
  const end = to === undefined ? asOf + 1 : requireEpochMilliseconds(to, 'to')
  const start = from === undefined ? Math.max(0, end - usual) : requireEpochMilliseconds(from, 'from')
  if (start >= end) throw new InvalidInput('must be before to', ['query', 'from'])
  if (longest !== null && end - start > longest + 1)
    throw new InvalidInput(`is more than ${longest / HOUR} hours before to; ask in parts`, ['query', 'from'])
  return { from: start, to: end }
}
