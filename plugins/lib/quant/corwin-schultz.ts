import { presentMean } from './mean.ts'
import { logPrices, type Ohlc } from './ohlc.ts'

const K = 3 - 2 * Math.SQRT2

/**
 * Corwin and Schultz's spread (a fraction) from high and low: two single ranges hold the variance twice and the spread
 * twice, one two-bar range the variance twice and the spread once. Ranges are moved by the gap to the last close; pair
 * estimates below zero are kept, so the mean is not biased upward. Pairs with a missing price are left out; null where
 * none is left.
 *
 * Source: Corwin and Schultz, "A simple way to estimate bid-ask spreads from daily high and low prices", J. Finance 67
 * (2012) 719-760, eq. 14 and 18, with the overnight adjustment of their section I.C.
 *
 * @example corwinSchultzSpread({ high: [101, 101], low: [99, 99], close: [100, 100] }) // 0.0200…
 */
export function corwinSchultzSpread({ high, low, close }: Pick<Ohlc, 'high' | 'low' | 'close'>): number | null {
  const [highs, lows, closes] = [logPrices(high), logPrices(low), logPrices(close)]
  const pairs = closes.slice(1).map((_, i) => {
    const [h1, l1, c1] = [highs[i]!, lows[i]!, closes[i]!]
    const [h, l] = [highs[i + 1]!, lows[i + 1]!]
    const gap = Math.max(0, c1 - h) + Math.min(0, c1 - l)
    const beta = (h - l) ** 2 + (h1 - l1) ** 2
    const gamma = (Math.max(h + gap, h1) - Math.min(l + gap, l1)) ** 2
    const alpha = (Math.sqrt(2 * beta) - Math.sqrt(beta)) / K - Math.sqrt(gamma / K)
    return 2 * Math.tanh(alpha / 2)
  })
  const spread = presentMean(pairs)
  return Number.isNaN(spread) ? null : spread
}
