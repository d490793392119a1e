import { moments } from './descriptive-statistics.ts'

/** Bars as columns of equal length, oldest first. A missing price is NaN. A price at or below zero counts as missing. */
export interface Ohlc {
  readonly open: ArrayLike<number>
  readonly high: ArrayLike<number>
  readonly low: ArrayLike<number>
  readonly close: ArrayLike<number>
}

/** Natural logarithms of prices; NaN for a missing price. */
export function logPrices(prices: ArrayLike<number>): Float64Array {
  return Float64Array.from(prices, (price) => (price > 0 ? Math.log(price) : NaN))
}

/**
 * Parkinson's variance of a bar from its range, ln(H/L)² / (4 ln 2).
 *
 * Source: Parkinson, "The extreme value method for estimating the variance of the rate of return", J. Business 53
 * (1980), equation 1.
 *
 * @example parkinson(102, 99) // ln(102/99)² / 2.772589 = 0.000321…
 */
export function parkinson(high: number, low: number): number {
  const range = Math.log(high / low)
  return (range * range) / (4 * Math.LN2)
}

/**
 * Garman and Klass's variance of a bar, 0.5 ln(H/L)² - (2 ln 2 - 1) ln(C/O)². For a path without drift or gaps it is
 * about seven times as efficient as the squared return. It is never negative for a possible bar.
 *
 * Source: Garman and Klass, "On the estimation of security price volatilities from historical data", J. Business 53
 * (1980), the practical form of their equation 20.
 *
 * @example garmanKlass(100, 102, 99, 101) // 0.5·ln(102/99)² - 0.386294·ln(1.01)² = 0.000407…
 */
export function garmanKlass(open: number, high: number, low: number, close: number): number {
  const range = Math.log(high / low)
  const body = Math.log(close / open)
  return 0.5 * range * range - (2 * Math.LN2 - 1) * body * body
}

/**
 * Yang and Zhang's variance of returns per bar. It is independent of drift and includes opening jumps: the sample
 * variance of overnight returns, plus k times that of open-to-close returns, plus 1-k times the Rogers-Satchell variance,
 * with k = 0.34/(1.34 + (n+1)/(n-1)) and n the number of bars after the first. Null for fewer than three bars.
 *
 * Source: Yang and Zhang, "Drift-independent volatility estimation based on high, low, open, and close prices", J.
 * Business 73 (2000) 477-491, eq. 7 and 10.
 *
 * @example yangZhangVariance({ open: [100, 101, 100], high: [102, 102, 102], low: [99, 100, 99], close: [101, 100, 101] })
 * // 0.000287962…
 */
export function yangZhangVariance({ open, high, low, close }: Ohlc): number | null {
  const count = open.length - 1
  if (count < 2) return null
  const overnight = new Float64Array(count)
  const session = new Float64Array(count)
  let range = 0
  for (let i = 1; i <= count; i += 1) {
    const [up, down, end] = [high, low, close].map((price) => Math.log(price[i]! / open[i]!)) as [
      number,
      number,
      number,
    ]
    overnight[i - 1] = Math.log(open[i]! / close[i - 1]!)
    session[i - 1] = end
    range += up * (up - end) + down * (down - end)
  }
  const weight = 0.34 / (1.34 + (count + 1) / (count - 1))
  const sample = (values: Float64Array): number => (moments(values).variance * count) / (count - 1)
  return sample(overnight) + weight * sample(session) + (1 - weight) * (range / count)
}
