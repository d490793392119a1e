import { signedRoot } from './mean.ts'
import { logPrices } from './ohlc.ts'

/**
 * Roll's spread (a fraction) from closes: 2·√(-cov(r, r₋₁)) of log returns, the covariance of sample size n-1, the sign
 * kept where the covariance is positive. Pairs with a missing price are left out; null below two pairs.
 *
 * Source: R. Roll, "A simple implicit measure of the effective bid-ask spread in an efficient market", J. Finance 39
 * (1984) 1127-1139.
 *
 * @example rollSpread([100, 101, 100, 101, 100, 101]) // 0.0229…
 */
export function rollSpread(close: ArrayLike<number>): number | null {
  const logs = logPrices(close)
  let count = 0
  let sumX = 0
  let sumY = 0
  let sumXY = 0
  for (let i = 2; i < close.length; i += 1) {
    const [x, y] = [logs[i]! - logs[i - 1]!, logs[i - 1]! - logs[i - 2]!]
    if (Number.isNaN(x) || Number.isNaN(y)) continue
    count += 1
    sumX += x
    sumY += y
    sumXY += x * y
  }
  if (count < 2) return null
  const covariance = (sumXY - (sumX * sumY) / count) / (count - 1)
  return signedRoot(-4 * covariance)
}
