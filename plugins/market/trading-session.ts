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

/** Epoch seconds. `opened` and `closes` are null for a market that never closes. */
export interface TradingSession {
  readonly is_open: boolean
  /** First second of the session that is open, else of the last one. */
  readonly opened: number | null
  /** Its end. */
  readonly closes: number | null
  /** First second of the next session; null while one is open. */
  readonly next_open: number | null
}

const DAY = 86_400
/** More days than any closing of the exchange lasted since 1971. */
const FAR = 10

/**
 * The trading session at a moment.
 *
 * @example sessionAt('us_equity', Date.UTC(2026, 10, 20, 15) / 1000) // Friday 10:00 in New York: open, closes 21:00 UTC
 */
export function sessionAt(session: '24x7' | 'us_equity', at: number): TradingSession {
  if (session === '24x7') return { is_open: true, opened: null, closes: null, next_open: null }
  const today = Math.floor(at / DAY) * DAY
  const days = Array.from({ length: 2 * FAR + 1 }, (_, i) => sessionOf(today + (i - FAR) * DAY)).filter(
    (one) => one !== null,
  )
  const last = days.findLast(({ from }) => from <= at)
  const isOpen = last !== undefined && at < last.to
  return {
    is_open: isOpen,
    opened: last?.from ?? null,
    closes: last?.to ?? null,
    next_open: isOpen ? null : (days.find(({ from }) => from > at)?.from ?? null),
  }
}
