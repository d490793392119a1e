/**
 * The quantile of sorted values at `probability`, linear between order statistics (type 7, the default of R and numpy):
 * h = (n - 1)p, x_floor(h) + (h - floor(h))(x_floor(h)+1 - x_floor(h)). NaN for an empty sample.
 *
 * Source: Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996), type 7.
 *
 * @param size How many of the leading values count; the rest of the array is ignored.
 * @example quantileSorted([1, 2, 3, 4], 0.65) // 2.95
 */
export function quantileSorted(sorted: ArrayLike<number>, probability: number, size: number = sorted.length): number {
  if (size === 0) return NaN
  const position = (size - 1) * Math.min(1, Math.max(0, probability))
  const below = Math.floor(position)
  const low = sorted[below]!
  const high = sorted[Math.min(below + 1, size - 1)]!
  return low + (position - below) * (high - low)
}

/**
 * The empirical distribution function between evenly spaced quantiles: the share of the sample at or below `value`,
 * linear between neighbours, 0 below the first and 1 above the last. `quantiles[i]` is the quantile at i/(n - 1).
 *
 * @example cumulative([-1, 0, 2], 1) // 0.75
 */
export function cumulative(quantiles: ArrayLike<number>, value: number): number {
  const last = quantiles.length - 1
  if (value < quantiles[0]!) return 0
  if (value >= quantiles[last]!) return 1
  let low = 0
  let high = last
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (quantiles[middle]! <= value) low = middle
    else high = middle
  }
  return (low + (value - quantiles[low]!) / (quantiles[high]! - quantiles[low]!)) / last
}
