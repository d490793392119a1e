/**
 * Sample order books of the symbols that trade around the clock: a pure function of symbol and minute, around the close
 * of the sample's last minute. The quantity within a distance x of the middle grows with x², plus some at the best
 * price, so that an order costs on average what the square-root law of market impact says.
 */
import { seedOf } from '../../lib/feeds/sample-numbers.ts'
import { IMPACT_COEFFICIENT } from '../../lib/quant/market-impact.ts'
import { normalQuantile } from '../../lib/quant/normal-distribution.ts'
import { roundTo } from '../../lib/quant/rounding.ts'
import { seededRandom } from '../../lib/quant/seeded-random.ts'
import { type Level, pairsOf } from '../../lib/quant/order-book.ts'
import type { BarSource } from '../bar-source.ts'
import { DECIMALS } from '../sample-bars.ts'
import type { SampleSymbol } from '../sample-bars.ts'
import type { BookSnapshot, OrderBookSource } from './order-book-source.ts'

const LEVELS = 250
/** Distance from the middle to the last level, in daily volatilities. */
const REACH = 0.05
/** Quantity at the best price, as a share of a minute's turnover. */
const TOUCH = 0.03
/** Typical spread, as a fraction of the price. */
const SPREAD = 3e-6
const DAY_MINUTES = 1440
/** How far back pairs of books reach. */
const PAIRS_SECONDS = 10_800

/** Sample books from the bars of `source`, for 24x7 symbols only. There are no separate quotes: the book has them. */
export function openSampleBooks(symbols: readonly SampleSymbol[], source: BarSource): OrderBookSource {
  const continuous = new Map(symbols.filter(({ session }) => session === '24x7').map((entry) => [entry.symbol, entry]))
  /** The books of the minutes of [from, asOf]. */
  async function booksOf(symbol: string, from: number, asOf: number): Promise<BookSnapshot[]> {
    const entry = continuous.get(symbol)
    const series = entry && (await source.series()).find((one) => one.symbol === symbol)
    if (!series) return []
    const bars = await source.read(series, from - 60, Math.floor(asOf / 60) * 60, asOf)
    return Array.from(bars.close, (price, i) => makeBook(entry, bars.time[i]! + 60, price))
  }
  return {
    book: async (symbol, asOf) => (await booksOf(symbol, Math.floor(asOf / 60) * 60, asOf)).at(-1) ?? null,
    async pairs(symbol, { venue, after }, asOf) {
      const from = Math.max(Math.floor(after / 60) * 60 + 60, Math.floor(asOf / 60) * 60 - PAIRS_SECONDS)
      return pairsOf(await booksOf(symbol, from, asOf), venue)
    },
    quotes: async () => null,
  }
}

/** The book of a minute around its price. */
export function makeBook(symbol: SampleSymbol, time: number, price: number): BookSnapshot {
  const { tick, turnover } = symbol
  const random = seededRandom(seedOf(symbol.symbol) ^ Math.imul(time / 60, 0x9e3779b1))
  const lognormal = (deviation: number): number => Math.exp(deviation * normalQuantile(0.001 + 0.998 * random()))
  const volatility = symbol.volatility / Math.sqrt(365)
  const spread = Math.max(1, Math.round((price * SPREAD * lognormal(0.5)) / tick))
  const bid = Math.round(price / tick - spread / 2)
  const depth = lognormal(0.25)
  // The marginal price of the law is 1.5 times its average, so what rests within x is ADV (x / (1.5 Y σ))².
  const within = (x: number): number => depth * turnover * (x / (1.5 * IMPACT_COEFFICIENT * volatility)) ** 2
  const reach = REACH * volatility * price
  const touch = (TOUCH * turnover) / DAY_MINUTES
  const side = (best: number, sign: 1 | -1): Level[] => {
    const levels: Level[] = []
    let last = -1
    let below = 0
    for (let i = 0; i < LEVELS; i += 1) {
      const away = Math.max(last + 1, Math.round((reach * (i / LEVELS) ** 1.5) / tick))
      if (away * tick > reach) break
      const level = (best + sign * away) * tick
      const worth = (i === 0 ? touch : 0) + Math.max(within((away * tick) / price) - below, touch / 50)
      levels.push([roundTo(level, DECIMALS), roundTo((worth * lognormal(0.6)) / level, DECIMALS)])
      below = within((away * tick) / price)
      last = away
    }
    return levels
  }
  return { venue: 'sample', time, bids: side(bid, -1), asks: side(bid + spread, 1) }
}
