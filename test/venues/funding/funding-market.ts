/** Funding rates of invented perpetual contracts: each settlement of each venue follows from a seed. */
import { type ScriptedMarket, SYMBOLS, unit } from '../scripted-market.ts'

/** The venues that have perpetual contracts. */
export const PERPETUAL_VENUES = ['binance', 'bybit', 'okx', 'hyperliquid', 'dydx', 'kraken', 'gate', 'bitmex'] as const

export type PerpetualVenue = (typeof PERPETUAL_VENUES)[number]

/** Contracts are on the symbols of the market, and on ALT, whose longs have left it: it pays −2% an hour at two venues. */
export const CONTRACTS: readonly string[] = [
  ...Object.keys(SYMBOLS).filter((symbol) => symbol !== 'USDT-USD'),
  'ALT-USD',
]

const HOURS: Readonly<Record<PerpetualVenue, number>> = {
  binance: 8,
  bybit: 8,
  okx: 8,
  hyperliquid: 1,
  dydx: 1,
  kraken: 1,
  gate: 8,
  bitmex: 8,
}
const EXTREME: readonly string[] = ['binance', 'bybit']

export interface FundingMarket {
  /** Hours between two settlements of a contract. */
  hours(venue: PerpetualVenue, symbol: string): number
  /** Moves a contract to another interval, as venues do when its rate has hit a cap. */
  setHours(venue: PerpetualVenue, symbol: string, hours: number): void
  /** The rate that is paid at a settlement, epoch seconds, as a fraction for the whole interval. */
  rate(venue: PerpetualVenue, symbol: string, settlement: number): number
  /** Overrides the rate of a contract from now on. */
  setRate(venue: PerpetualVenue, symbol: string, rate: number): void
  /** The next settlement after a moment (epoch milliseconds), in epoch seconds. */
  next(venue: PerpetualVenue, symbol: string, now: number): number
  /** Settlements in (from, to], epoch seconds, oldest first. */
  settled(venue: PerpetualVenue, symbol: string, from: number, to: number): { time: number; rate: number }[]
  /** The mark price of a contract, given the price of its symbol at the venue. */
  mark(venue: PerpetualVenue, symbol: string, spot: number, now: number): number
  /** The price of the symbol; ALT has its own. */
  spot(price: ScriptedMarket['price'], symbol: string, at: number): number
}

/** Creates the rates. */
export function createFundingMarket(seed = 'tollgate'): FundingMarket {
  const intervals = new Map<string, number>()
  const rates = new Map<string, number>()
  const hours = (venue: PerpetualVenue, symbol: string): number =>
    intervals.get(`${venue}/${symbol}`) ?? (symbol === 'ALT-USD' && EXTREME.includes(venue) ? 1 : HOURS[venue])
  const rate = (venue: PerpetualVenue, symbol: string, settlement: number): number => {
    const fixed = rates.get(`${venue}/${symbol}`)
    if (fixed !== undefined) return fixed
    const share = 2 * unit(`${seed}/${venue}/${symbol}`, settlement / 3600, 1) - 1
    if (symbol === 'ALT-USD' && EXTREME.includes(venue)) return Number((-0.02 + 0.0005 * share).toFixed(8))
    return Number(((0.0001 + 0.00012 * share) * (hours(venue, symbol) / 8)).toFixed(8))
  }
  const next = (venue: PerpetualVenue, symbol: string, now: number): number => {
    const period = hours(venue, symbol) * 3600
    return (Math.floor(now / 1000 / period) + 1) * period
  }
  return {
    hours,
    rate,
    next,
    setHours: (venue, symbol, value) => void intervals.set(`${venue}/${symbol}`, value),
    setRate: (venue, symbol, value) => void rates.set(`${venue}/${symbol}`, value),
    settled(venue, symbol, from, to) {
      const period = hours(venue, symbol) * 3600
      const found: { time: number; rate: number }[] = []
      for (let time = (Math.floor(from / period) + 1) * period; time <= to; time += period)
        found.push({ time, rate: rate(venue, symbol, time) })
      return found
    },
    mark: (venue, symbol, spot, now) =>
      spot * (1 + 0.0004 * (unit(`${venue}/${symbol}`, Math.floor(now / 1000), 2) - 0.5)),
    spot: (price, symbol, at) => (symbol === 'ALT-USD' ? 0.0421 : price(symbol, at)),
  }
}
