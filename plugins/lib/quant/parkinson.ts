/**
 * Variance of a bar from its range, ln(H/L)² / (4 ln 2).
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
