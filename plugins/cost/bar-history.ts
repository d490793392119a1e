/** The bars behind an estimate, reduced to figures once a minute. */
import type { Ask } from 'tollgate/plugin'
import { LRUCache } from 'lru-cache'
import { type BarFigures, barFigures } from './bar-figures.ts'

const DAY = 86_400
/** Ten days, as Almgren et al. average volume and volatility. */
const SESSIONS = 10
/** Calendar days to read: the last ten, those that hold ten sessions in any year, and a year of daily bars. */
const REACH = { continuous: 10, sessions: 17, daily: 366 }
const INTRADAY_SECONDS = 3600
/** A finer series is preferred unless a coarser one reaches this much further. */
const BEHIND_SECONDS = 7 * DAY

export interface Traded {
  readonly symbol: string
  readonly session: '24x7' | 'us_equity'
  /** First second of the session that is going on, else null. */
  readonly openSince: number | null
  readonly dayMinutes: number
}

/** Figures of a symbol's bars as known at `at` (epoch seconds); null where there are none, or too few. */
export type BarHistory = (ask: Ask, traded: Traded, at: number) => Promise<BarFigures | null>

/**
 * The last ten days of the finest bars up to an hour long, or the last year of daily bars; of a market with sessions the
 * last ten whole ones, with the price and the age of the newest bar. Figures are kept for the minute they were made in;
 * callers who come while they are made wait for them.
 */
export function createBarHistory(): BarHistory {
  const kept = new LRUCache<string, { figures: BarFigures | null }>({ max: 256 })
  const making = new Map<string, Promise<BarFigures | null>>()

  return async (ask, traded, at) => {
    const key = `${traded.symbol} ${Math.floor(at / 60)}`
    const known = kept.get(key)
    if (known) return known.figures
    // Whoever made them may have left before the end: then the next makes them.
    const other = await making.get(key)?.catch(() => undefined)
    if (other !== undefined) return other
    const own = read(ask, traded, at)
    making.set(key, own)
    try {
      const figures = await own
      kept.set(key, { figures })
      return figures
    } finally {
      if (making.get(key) === own) making.delete(key)
    }
  }
}

async function read(ask: Ask, traded: Traded, at: number): Promise<BarFigures | null> {
  const { symbol, session, dayMinutes } = traded
  const { series } = await ask('getMarketStatus', { params: {}, query: { symbol }, body: undefined })
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
  const bars = await ask('getBars', { params: {}, query, body: undefined })
  const isWhole = interval === DAY || session === '24x7'
  const figures = barFigures(isWhole ? bars : sessionsOf(bars, traded), dayMinutes)
  const last = bars.count - 1
  return figures && { ...figures, lastClose: bars.close[last]!, newest: bars.time[last]! + interval }
}

type Bars = Parameters<typeof barFigures>[0]

/** The last ten whole sessions; the one that is going on counts only where there is no other. */
function sessionsOf(bars: Bars, { openSince }: Traded): Bars {
  const begun = openSince === null ? -1 : bars.time.findIndex((time) => time >= openSince)
  const end = begun > 0 ? begun : bars.count
  const starts: number[] = []
  for (let i = 0; i < end; i += 1)
    if (i === 0 || Math.floor(bars.time[i]! / DAY) !== Math.floor(bars.time[i - 1]! / DAY)) starts.push(i)
  return between(bars, starts.at(-SESSIONS) ?? 0, end)
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
