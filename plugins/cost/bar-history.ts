/** Reads the bars behind an estimate and reduces them to figures, once a minute per symbol. */
import type { Ask } from 'tollgate/plugin'
import { LRUCache } from 'lru-cache'
import { type BarFigures, barFigures, daysOf } from './bar-figures.ts'

const DAY = 86_400
/** Ten sessions: Almgren et al. average volume and volatility over ten days. */
const SESSIONS = 10
/** Calendar days to read: ten for 24x7 markets, enough for ten sessions for others, and a year of daily bars. */
const REACH = { continuous: 10, sessions: 17, daily: 366 }
const INTRADAY_SECONDS = 3600
/** The finest series is used unless it ends this long before the newest one. */
const BEHIND_SECONDS = 7 * DAY

export interface Traded {
  readonly symbol: string
  readonly session: '24x7' | 'us_equity'
  /** Start of the running session in epoch seconds; null if the market is closed. */
  readonly openSince: number | null
  readonly dayMinutes: number
}

/** The figures of the bars of a symbol at `at` (epoch seconds); null for too few bars. */
export type BarHistory = (ask: Ask, traded: Traded, at: number) => Promise<BarFigures | null>

/**
 * Uses the last ten days of the finest bars up to an hour long, or the last year of daily bars. For a market with sessions
 * it uses the last ten complete sessions, but the price and age of the newest bar. Figures are cached for the minute in
 * which they were computed; concurrent callers share one computation.
 */
export function createBarHistory(): BarHistory {
  const cache = new LRUCache<string, { figures: BarFigures | null }>({ max: 256 })
  const running = new Map<string, Promise<BarFigures | null>>()

  return async (ask, traded, at) => {
    const key = `${traded.symbol} ${Math.floor(at / 60)}`
    const cached = cache.get(key)
    if (cached) return cached.figures
    // If the caller that computes them gives up, the next caller computes them again.
    const other = await running.get(key)?.catch(() => undefined)
    if (other !== undefined) return other
    const own = read(ask, traded, at)
    running.set(key, own)
    try {
      const figures = await own
      cache.set(key, { figures })
      return figures
    } finally {
      if (running.get(key) === own) running.delete(key)
    }
  }
}

async function read(ask: Ask, traded: Traded, at: number): Promise<BarFigures | null> {
  const { symbol, session, dayMinutes } = traded
  const { series } = await ask('getMarketStatus', { query: { symbol } })
  const ends = series
    .filter(({ last }) => last !== null)
    .map(({ interval_seconds: interval, last }) => ({ interval, end: (last as number) + interval }))
  const newest = Math.max(...ends.map(({ end }) => end))
  const chosen = ends
    .toSorted((a, b) => a.interval - b.interval)
    .find(({ end, interval }) => (interval <= INTRADAY_SECONDS || interval === DAY) && end > newest - BEHIND_SECONDS)
  if (!chosen) return null
  const { interval, end } = chosen
  const reach = interval === DAY ? REACH.daily : REACH[session === '24x7' ? 'continuous' : 'sessions']
  const to = Math.min(end, at)
  const query = { symbol, from: Math.floor(to - reach * DAY), to: Math.floor(to), interval }
  const bars = await ask('getBars', { query })
  const isWhole = interval === DAY || session === '24x7'
  const figures = barFigures(isWhole ? bars : sessionsOf(bars, traded), dayMinutes)
  const last = bars.count - 1
  return figures && { ...figures, lastClose: bars.close[last]!, newest: bars.time[last]! + interval }
}

type Bars = Parameters<typeof barFigures>[0]

/** The last ten complete sessions. The running session is used only if there is no other. */
function sessionsOf(bars: Bars, { openSince }: Traded): Bars {
  const begun = openSince === null ? -1 : bars.time.findIndex((time) => time >= openSince)
  const end = begun > 0 ? begun : bars.count
  const days = daysOf({ count: end, time: bars.time })
  return between(bars, days.at(-SESSIONS)?.from ?? 0, end)
}

function between(bars: Bars, from: number, to: number): Bars {
  const part = (column: Float64Array): Float64Array => column.subarray(from, to)
  const { time, open, high, low, close, volume, state } = bars
  return {
    ...bars,
    count: to - from,
    time: part(time),
    open: part(open),
    high: part(high),
    low: part(low),
    close: part(close),
    volume: part(volume),
    state: state.subarray(from, to),
  }
}
