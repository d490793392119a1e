import { type Ask, NotFound } from 'tollgate/plugin'
import { DAY } from '../ledger.ts'
import { bare } from './name.ts'
import type { Series } from './series.ts'

/** What the market product says of a symbol. */
export interface Listed {
  readonly symbol: string
  readonly session: '24x7' | 'us_equity'
  readonly intervals: readonly number[]
}

export interface Market {
  /** Why its bars say nothing of real trades, or null: made-up bars bound no real price. */
  readonly unfit: string | null
  listed(symbol: string): Listed | null
  /** Bars between two moments, epoch milliseconds; null where there are none. */
  bars(listed: Listed, from: number, to: number, isDaily: boolean): Promise<Series | null>
}

/** The service's own bars, asked of the market product. */
export async function openMarket(ask: Ask, unfit: string | null): Promise<Market> {
  const { symbols } = await ask('getSymbols', { params: {}, query: {}, body: undefined })
  const known = new Map<string, Listed>()
  for (const { symbol, aliases, session, intervals } of symbols)
    for (const name of [symbol, ...aliases]) known.set(bare(name), { symbol, session, intervals })
  return {
    unfit,
    listed: (symbol) => known.get(bare(symbol)) ?? null,
    async bars({ symbol, session, intervals }, from, to, isDaily) {
      const interval = isDaily ? DAY / 1000 : (intervals[0] ?? 60)
      const query = {
        symbol,
        from: Math.floor(from / DAY) * (DAY / 1000),
        to: Math.floor(to / 1000) + interval,
        interval,
      }
      const bars = await ask('getBars', { params: {}, query, body: undefined }).catch((error: unknown) => {
        if (error instanceof NotFound) return null
        throw error
      })
      if (!bars || bars.count === 0) return null
      const FILLED = 1
      return {
        time: bars.time.map((open) => open * 1000),
        open: bars.open,
        high: bars.high,
        low: bars.low,
        close: bars.close,
        volume: bars.volume,
        idle: bars.state.map((state) => (state === FILLED ? 1 : 0)),
        split: null,
        interval: interval * 1000,
        isWhole: false,
        isContinuous: session === '24x7',
        isNyse: session === 'us_equity',
      }
    },
  }
}
