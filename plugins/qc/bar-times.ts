/** Timestamps of bars, and the wall clocks of time zones. */
import { FILE_RULES, formatMilliseconds, readTimestamp } from '../lib/time/timestamps.ts'

/** Seconds in a day. */
export const DAY = 86_400

/** Seconds to add to UTC to get the wall clock of a place, given epoch seconds. */
export type Zone = (utc: number) => number

/** The clock of UTC. */
export const UTC: Zone = () => 0

/**
 * The wall clock of an IANA time zone; null if the zone does not exist. It asks the system for the offset once per day,
 * or once per hour on a day on which the clocks change.
 *
 * @example createZone('America/New_York')!(1_700_000_000) // -18000
 */
export function createZone(name: string): Zone | null {
  if (name === 'UTC') return UTC
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' })
  } catch {
    return null
  }
  const offsets = new Map<number, number>()
  const offsetAt = (utc: number): number => {
    const known = offsets.get(utc)
    if (known !== undefined) return known
    const offset = offsetOf(format.format(utc * 1000))
    offsets.set(utc, offset)
    return offset
  }
  return (utc) => {
    const day = Math.floor(utc / DAY) * DAY
    const [start, end] = [offsetAt(day), offsetAt(day + DAY)]
    return start === end ? start : offsetAt(Math.floor(utc / 3600) * 3600)
  }
}

/** "11/14/2023, GMT-05:00" → -18000. */
function offsetOf(text: string): number {
  const [, sign, hours, minutes = '0', seconds = '0'] =
    /GMT([+-])(\d\d):?(\d\d)?:?(\d\d)?/.exec(text) ?? ([] as string[])
  const size = Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(seconds)
  return sign === '-' ? -size : size
}

/**
 * Epoch seconds of a bar's timestamp: an epoch number or a date in any form that `readTimestamp` reads, from 1800 to
 * 2200; null otherwise. A date alone is midnight UTC whatever the zone, because that is how daily bars are labelled. A
 * time without an offset is read on the wall clock of `zone`.
 *
 * @example parseBarTime('2024-07-01 09:30', createZone('America/New_York')!) // 1719840600
 */
export function parseBarTime(value: unknown, zone: Zone = UTC): number | null {
  const read = readTimestamp(value, FILE_RULES)
  if (!read) return null
  const local = read.seconds + read.nanoseconds / 1e9
  if (read.offsetSeconds !== null) return local - read.offsetSeconds
  // The first guess at the offset can be wrong by an hour near a change of clocks; the second is right.
  return read.hasTime ? local - zone(local - zone(local)) : local
}

/** RFC 3339 in UTC, with milliseconds only if there are any: "2024-07-01T13:30:00Z". */
export function formatBarTime(seconds: number): string {
  return formatMilliseconds(Math.round(seconds * 1000))
}
