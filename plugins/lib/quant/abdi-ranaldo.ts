import { presentMean, signedRoot } from './mean.ts'
import { logPrices, type Ohlc } from './ohlc.ts'

/**
 * Abdi and Ranaldo's spread (a fraction) from close, high and low: the signed root of the mean of
 * 4·(c₋₁ - m₋₁)·(c₋₁ - m), with c the log close and m the middle of the log range. Pairs with a missing price are left
 * out; null where none is left.
 *
 * Source: Abdi and Ranaldo, "A simple estimation of bid-ask spreads from daily close, high, and low prices", Review of
 * Financial Studies 30 (2017) 4437-4480, eq. 11.
 *
 * @example abdiRanaldoSpread({ high: [101, 101], low: [99, 99], close: [101, 101] }) // 0.0200…
 */
export function abdiRanaldoSpread({ high, low, close }: Pick<Ohlc, 'high' | 'low' | 'close'>): number | null {
  const [h, l, c] = [logPrices(high), logPrices(low), logPrices(close)]
  const mid = h.map((value, i) => (value + l[i]!) / 2)
  const products = c.slice(1).map((_, i) => 4 * (c[i]! - mid[i]!) * (c[i]! - mid[i + 1]!))
  const square = presentMean(products)
  return Number.isNaN(square) ? null : signedRoot(square)
}
