import { moments } from './moments.ts'

/**
 * Autocorrelations of lags 1 to `lags` about the common mean, each divided by the variance at lag 0. All 0 for a
 * constant series.
 *
 * Source: Box and Jenkins, "Time Series Analysis", estimator r_k = c_k / c_0.
 *
 * @example autocorrelation([1, 2, 3, 4, 5], 2) // [0.4, -0.1]
 */
export function autocorrelation(values: ArrayLike<number>, lags: number): number[] {
  const { count, mean, variance } = moments(values)
  return Array.from({ length: lags }, (_, index) => {
    if (!(variance > 0)) return 0
    let sum = 0
    for (let i = index + 1; i < count; i += 1) sum += (values[i]! - mean) * (values[i - index - 1]! - mean)
    return sum / count / variance
  })
}
