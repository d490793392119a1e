/** Timestamps of bars. */
import { FILE_RULES, formatMilliseconds, readTimestamp } from '../lib/time/timestamps.ts'
import { UTC, type Zone } from '../lib/time/time-zones.ts'
import { utcOf } from '../lib/time/wall-clock.ts'

/** Seconds in a day. */
export const DAY = 86_400

/**
 * Epoch seconds of a bar's timestamp: an epoch number or a date in any form that `readTimestamp` reads, from 1800 to
 * 2200; null otherwise. A date alone is midnight UTC whatever the zone, because that is how daily bars are labelled. A
 * time without an offset is read on the wall clock of `zone`; one that it shows twice is the first.
 *
 * @example parseBarTime('2024-07-01 09:30', createZone('America/New_York')!) // 1719840600
 */
export function parseBarTime(value: unknown, zone: Zone = UTC): number | null {
  const read = readTimestamp(value, FILE_RULES)
  if (!read) return null
  const local = read.seconds + read.nanoseconds / 1e9
  if (read.offsetSeconds !== null) return local - read.offsetSeconds
  return read.hasTime && zone !== UTC ? utcOf(local, zone) : local
}

/** Whether a timestamp is a time on a wall clock, without an offset. */
export function isWallTime(value: unknown): boolean {
  const read = typeof value === 'string' ? readTimestamp(value, FILE_RULES) : null
  return read !== null && read.offsetSeconds === null && read.hasTime
}

/** Whether a timestamp is a day: a date alone, or a text that ends at midnight. */
export function isDay(value: unknown): boolean {
  const read = typeof value === 'string' ? readTimestamp(value, FILE_RULES) : null
  return read !== null && (!read.hasTime || (read.seconds % DAY === 0 && read.offsetSeconds === null))
}

/** RFC 3339 in UTC, with milliseconds only if there are any: "2024-07-01T13:30:00Z". */
export function formatBarTime(seconds: number): string {
  return formatMilliseconds(Math.round(seconds * 1000))
}
