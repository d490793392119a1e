interface Moments {
  readonly count: number
  readonly mean: number
  /** Population variance (divided by n). */
  readonly variance: number
  /** Population skewness m3 / m2^1.5; 0 if the variance is 0. */
  readonly skewness: number
  /** Raw population kurtosis m4 / m2², 3 for a normal distribution; 3 if the variance is 0. */
  readonly kurtosis: number
}

/**
 * The first four population moments, computed in two passes. For an empty sample every field except `count` is NaN.
 *
 * Source: definitions; e.g. Kendall and Stuart, "The Advanced Theory of Statistics", vol. 1.
 *
 * @example moments([2, 4, 4, 4, 5, 5, 7, 9]) // mean 5, variance 4, skewness 0.65625, kurtosis 2.78125
 */
export function moments(values: ArrayLike<number>): Moments {
  const count = values.length
  let sum = 0
  for (let i = 0; i < count; i += 1) sum += values[i]!
  const mean = sum / count
  let second = 0
  let third = 0
  let fourth = 0
  for (let i = 0; i < count; i += 1) {
    const deviation = values[i]! - mean
    const square = deviation * deviation
    second += square
    third += square * deviation
    fourth += square * square
  }
  const variance = second / count
  if (variance === 0) return { count, mean, variance, skewness: 0, kurtosis: 3 }
  return {
    count,
    mean,
    variance,
    skewness: third / count / variance ** 1.5,
    kurtosis: fourth / count / (variance * variance),
  }
}

/**
 * Autocorrelations at lags 1 to `lags` about the common mean, each divided by the variance at lag 0. They are all 0 for
 * a constant series.
 *
 * Source: Box and Jenkins, "Time Series Analysis", estimator r_k = c_k / c_0.
 *
 * @example autocorrelation([1, 2, 3, 4, 5], 2) // [0.4, -0.1]
 */
export function autocorrelation(values: ArrayLike<number>, lags: number): number[] {
  const { count, mean, variance } = moments(values)
  const correlations = Array.from({ length: lags }, () => 0)
  if (!(variance > 0)) return correlations
  // Four lags at once, because the additions of one sum wait for each other. Zeros come before the first value.
  const deviations = new Float64Array(count + 3)
  for (let i = 0; i < count; i += 1) deviations[i + 3] = values[i]! - mean
  for (let lag = 1; lag <= lags; lag += 4) {
    let [one, two, three, four] = [0, 0, 0, 0]
    for (let i = lag + 3; i < count + 3; i += 1) {
      const deviation = deviations[i]!
      one += deviation * deviations[i - lag]!
      two += deviation * deviations[i - lag - 1]!
      three += deviation * deviations[i - lag - 2]!
      four += deviation * deviations[i - lag - 3]!
    }
    for (const [index, sum] of [one, two, three, four].slice(0, lags - lag + 1).entries())
      correlations[lag - 1 + index] = sum / count / variance
  }
  return correlations
}

/**
 * The quantile of ascending values at `probability` (0 to 1), linear between order statistics (type 7, the default of R
 * and numpy): h = (n - 1)p, x_floor(h) + (h - floor(h))(x_floor(h)+1 - x_floor(h)). NaN for an empty sample.
 *
 * Source: Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996), type 7.
 *
 * @param size Number of leading values to use; the rest of the array is ignored.
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
 * The empirical distribution function, read from evenly spaced quantiles: the share of the sample at or below `value`.
 * It is linear between neighbouring quantiles, 0 below the first and 1 from the last on. `quantiles[i]` is the quantile
 * at i/(n - 1). It is the inverse of `quantileSorted`.
 *
 * @example empiricalCdf([-1, 0, 2], 1) // 0.75
 */
export function empiricalCdf(quantiles: ArrayLike<number>, value: number): number {
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
