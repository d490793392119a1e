import { sessionOf } from './newyork.ts'

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
