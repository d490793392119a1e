/** The wall clocks of time zones. */

/** Seconds in a day. */
const DAY = 86_400

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
