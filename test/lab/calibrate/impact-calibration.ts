/** Fits the square-root law of impact to order books, and measures how far a walk is from the law. */
import { quantileSorted } from '../../../plugins/lib/quant/descriptive-statistics.ts'
import { squareRootImpact } from '../../../plugins/lib/quant/market-impact.ts'
import { type Book, type TimedBook, walkBook } from '../../../plugins/lib/quant/order-book.ts'

/** Volatility of a day (a fraction) and turnover of a day (in the quote currency) when a book was taken. */
export interface MarketScale {
  readonly sigmaDaily: number
  readonly advUsd: number
}

/** Tenth and ninetieth percentile of what was measured, divided by what was estimated. */
export interface Factors {
  readonly low: number
  readonly high: number
  /** Number of orders behind them. */
  readonly orders: number
}

export interface ImpactCalibration {
  /** Y of the square-root law: the median of impact / (σ √(Q/ADV)). */
  readonly coefficient: number
  /** A walk, divided by the law with this coefficient. */
  readonly law: Factors
  readonly books: number
}

/**
 * Sizes of the orders, as shares of the turnover of a day: from a tenth of a minute's turnover, below which books are
 * cheaper than the law, to seven minutes' turnover, where most books end.
 */
const PARTICIPATIONS = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005]
/** Fewer orders say nothing about a tenth percentile. */
const FEWEST_ORDERS = 30
const SIDES = ['buy', 'sell'] as const

/**
 * Calibrates the law on books, oldest first. `scaleAt` says how large and volatile the market was at a time; books without
 * it, and orders that a book cannot fill, are left out. Returns null for fewer than 30 orders.
 *
 * @example a book whose orders cost exactly the law with Y = 0.4 has the coefficient 0.4 and the factors 1 and 1
 */
export function calibrateImpact(
  books: readonly TimedBook[],
  scaleAt: (time: number) => MarketScale | null,
): ImpactCalibration | null {
  const ratios: number[] = []
  let used = 0
  for (const book of books) {
    const scale = scaleAt(book.time)
    if (!scale) continue
    const before = ratios.length
    for (const side of SIDES)
      for (const participation of PARTICIPATIONS) {
        const notional = participation * scale.advUsd
        const impact = impactBps(book, side, notional)
        if (impact === null) continue
        const order = { quantity: participation, dailyVolume: 1, dailyVolatility: scale.sigmaDaily }
        ratios.push(impact / (1e4 * squareRootImpact({ ...order, coefficient: 1 })))
      }
    if (ratios.length > before) used += 1
  }
  if (ratios.length < FEWEST_ORDERS) return null
  const coefficient = quantileSorted(Float64Array.from(ratios).sort(), 0.5)
  if (!(coefficient > 0)) return null
  return {
    coefficient,
    law: factorsOf(ratios.map((ratio) => ratio / coefficient)),
    books: used,
  }
}

function factorsOf(values: readonly number[]): Factors {
  const sorted = Float64Array.from(values).sort()
  return { low: quantileSorted(sorted, 0.1), high: quantileSorted(sorted, 0.9), orders: sorted.length }
}

/** What an order pays beyond the half spread, basis points; null if the book cannot fill it. */
function impactBps(book: Book, side: 'buy' | 'sell', notional: number): number | null {
  const walk = walkBook(book, side, notional)
  if (!walk) return null
  const [bid, ask] = [book.bids[0]![0], book.asks[0]![0]]
  return Math.max(0, walk.costBps - ((ask - bid) / (ask + bid)) * 1e4)
}
