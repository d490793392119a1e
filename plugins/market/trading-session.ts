import { once } from 'tollgate/plugin'
import { nyseClose, nyseClosed } from '../lib/time/nyse-calendar.ts'

const hourInNewYork = once(
  () => new Intl.DateTimeFormat('en-US', { timeZone: 'America/New_York', hour: 'numeric', hourCycle: 'h23' }),
)

/** Seconds that New York is behind UTC at noon of that day: 18,000 in winter, 14,400 in summer. */
export function newYorkLag(seconds: number): number {
  const noon = Math.floor(seconds / 86_400) * 86_400 + 17 * 3600
  return (17 - Number(hourInNewYork().format(noon * 1000))) * 3600
}

/** The regular NYSE session of the UTC day that starts at `midnight`, epoch seconds; null on a day without one. */
export function sessionOf(midnight: number): { readonly from: number; readonly to: number } | null {
  const day = new Date(midnight * 1000).toISOString().slice(0, 10)
  if (nyseClosed(day) !== null) return null
  const lag = newYorkLag(midnight)
  return { from: midnight + lag + 9.5 * 3600, to: midnight + lag + nyseClose(day) * 60 }
}

/** Times are epoch seconds. `opened` and `closes` are null for a market that never closes. */
export interface TradingSession {
  readonly is_open: boolean
  /** Start of the current session, or of the last one. */
  readonly opened: number | null
  /** End of that session. */
  readonly closes: number | null
  /** Start of the next session; null while one is open. */
  readonly next_open: number | null
}

const DAY = 86_400
/** Longer than any closure of the exchange since 1971, in days. */
const FAR = 10

/**
 * The trading session at a time.
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
