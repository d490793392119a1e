import { presentMean, signedRoot } from './mean.ts'
import { logPrices, type Ohlc } from './ohlc.ts'

/**
 * EDGE: the effective bid-ask spread (a fraction: 0.01 is 1%) estimated efficiently from open, high, low and close. Two
 * moment conditions, on open-to-mid and close-to-mid returns, are weighted by the inverse of their variances. Bars with
 * missing prices (NaN) are left out of the means they touch. The sign is kept: an estimate below zero means the spread
 * is too small to be seen; clip at zero when averaging. Null below three bars, below two bars that trade, or where
 * every open or every close sits at both extremes.
 *
 * Source: Ardia, Guidotti and Kroencke, "Efficient estimation of bid-ask spreads from open, high, low, and close
 * prices", J. Financial Economics 161 (2024) 103916. The authors' file of 10,000 simulated bars gives 0.0101849034905478,
 * with missing values 0.01013284969780197.
 *
 * @example edgeSpread({ open: [100, 101, 100, 101, 99.5, 100.2], high: [102, 101.5, 101, 102, 101, 101.1],
 *   low: [99, 99, 99, 100, 99, 99.8], close: [101, 100, 100.5, 100.2, 100.9, 100] }) // 0.00501823…
 */
export function edgeSpread({ open, high, low, close }: Ohlc): number | null {
  const count = open.length - 1
  if (count < 2) return null
  const column = (of: (i: number) => number): Float64Array => Float64Array.from({ length: count }, (_, i) => of(i + 1))
  const [o, h, l, c] = [logPrices(open), logPrices(high), logPrices(low), logPrices(close)]
  const mid = h.map((value, i) => (value + l[i]!) / 2)

  const r1 = column((i) => mid[i]! - o[i]!)
  const r2 = column((i) => o[i]! - mid[i - 1]!)
  const r3 = column((i) => mid[i]! - c[i - 1]!)
  const r4 = column((i) => c[i - 1]! - mid[i - 1]!)
  const r5 = column((i) => o[i]! - c[i - 1]!)

  const moved = column((i) => flag(h[i]! !== l[i]! || l[i] !== c[i - 1]!, h[i]!, l[i]!, c[i - 1]!))
  const where = (differs: (i: number) => number): number => presentMean(column((i) => moved[i - 1]! * differs(i)))
  const openAway = where((i) => flag(o[i]! !== h[i]!, o[i]!, h[i]!)) + where((i) => flag(o[i]! !== l[i]!, o[i]!, l[i]!))
  const closeAway =
    where((i) => flag(c[i - 1]! !== h[i - 1]!, c[i - 1]!, h[i - 1]!)) +
    where((i) => flag(c[i - 1]! !== l[i - 1]!, c[i - 1]!, l[i - 1]!))
  const trading = moved.reduce((sum, value) => sum + (value || 0), 0)
  if (trading < 2 || !(openAway > 0) || !(closeAway > 0)) return null

  const movedShare = presentMean(moved)
  const demean = (r: Float64Array): Float64Array => {
    const shift = presentMean(r) / movedShare
    return r.map((value, i) => value - shift * moved[i]!)
  }
  const [d1, d3, d5] = [demean(r1), demean(r3), demean(r5)]
  const x1 = d1.map((value, i) => (-4 / openAway) * value * r2[i]! - (4 / closeAway) * d3[i]! * r4[i]!)
  const x2 = d1.map((value, i) => (-4 / openAway) * value * r5[i]! - (4 / closeAway) * d5[i]! * r4[i]!)
  const [e1, e2] = [presentMean(x1), presentMean(x2)]
  const v1 = presentMean(x1.map((value) => value * value)) - e1 * e1
  const v2 = presentMean(x2.map((value) => value * value)) - e2 * e2
  const square = v1 + v2 > 0 ? (v2 * e1 + v1 * e2) / (v1 + v2) : (e1 + e2) / 2
  return Number.isNaN(square) ? null : signedRoot(square)
}

/** 1 or 0, or NaN where one of the prices compared is missing. */
function flag(holds: boolean, ...prices: readonly number[]): number {
  if (prices.some(Number.isNaN)) return Number.NaN
  return holds ? 1 : 0
}
