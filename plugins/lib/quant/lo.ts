/**
 * Lo's factor η(q) = q / √(q + 2 Σ_{k<q} (q-k)·ρ_k) from a Sharpe ratio per observation to one over q observations,
 * for autocorrelations ρ_1, ρ_2, … (missing lags count as 0). √q when they are all 0. NaN where the variance implied
 * by the correlations is not positive.
 *
 * Source: A. W. Lo, "The statistics of Sharpe ratios", Financial Analysts Journal 58 (2002) eq. 20.
 *
 * @example sharpeScale(12, Array.from({ length: 11 }, (_, k) => 0.2 ** (k + 1))) // 2.87884…, where √12 is 3.46410…
 */
export function sharpeScale(periods: number, correlations: ArrayLike<number>): number {
  let sum = periods
  const lags = Math.min(Math.ceil(periods) - 1, correlations.length)
  for (let k = 1; k <= lags; k += 1) sum += 2 * (periods - k) * correlations[k - 1]!
  return sum > 0 ? periods / Math.sqrt(sum) : Number.NaN
}

/**
 * Standard error of a Sharpe ratio of independent, identically distributed returns, √((1 + SR²/2)/T), per observation.
 *
 * Source: A. W. Lo, "The statistics of Sharpe ratios", Financial Analysts Journal 58 (2002) eq. 8.
 *
 * @example sharpeError(0.5, 60) // 0.1369306…
 */
export function sharpeError(sharpe: number, observations: number): number {
  return Math.sqrt((1 + (sharpe * sharpe) / 2) / observations)
}
