const DAY = 86_400

/** Seconds to add to UTC for the wall clock of a place. */
export type Zone = (utc: number) => number

export const UTC: Zone = () => 0

/**
 * The wall clock of an IANA zone, or null where there is no such zone. Offsets are asked once a day where the day has
 * one, once an hour where it has two.
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
  const known = new Map<number, number>()
  const ask = (utc: number): number => {
    const kept = known.get(utc)
    if (kept !== undefined) return kept
    const offset = offsetOf(format.format(utc * 1000))
    known.set(utc, offset)
    return offset
  }
  return (utc) => {
    const day = Math.floor(utc / DAY) * DAY
    const [start, end] = [ask(day), ask(day + DAY)]
    return start === end ? start : ask(Math.floor(utc / 3600) * 3600)
  }
}

/** "11/14/2023, GMT-05:00" → -18000. */
function offsetOf(text: string): number {
  const [, sign, hours, minutes = '0', seconds = '0'] =
    /GMT([+-])(\d\d):?(\d\d)?:?(\d\d)?/.exec(text) ?? ([] as string[])
  const size = Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(seconds)
  return sign === '-' ? -size : size
}
