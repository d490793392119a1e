import { nyseClose, nyseClosed } from '../lib/time/nyse-calendar.ts'

const hourOf = new Intl.DateTimeFormat('en-US', { timeZone: 'America/New_York', hour: 'numeric', hourCycle: 'h23' })

/** Seconds that New York is behind UTC on the day of a moment, as it stands at noon there: 5 hours, 4 in summer. */
export function newYorkLag(seconds: number): number {
  const noon = Math.floor(seconds / 86_400) * 86_400 + 17 * 3600
  return (17 - Number(hourOf.format(noon * 1000))) * 3600
}

/** The regular session of the day that starts at `midnight` (epoch seconds, UTC): first second and end, or null. */
export function sessionOf(midnight: number): { readonly from: number; readonly to: number } | null {
  const day = new Date(midnight * 1000).toISOString().slice(0, 10)
  if (nyseClosed(day) !== null) return null
  const lag = newYorkLag(midnight)
  return { from: midnight + lag + 9.5 * 3600, to: midnight + lag + nyseClose(day) * 60 }
}
