export interface Moments {
  readonly count: number
  readonly mean: number
  /** Population variance (divided by n). */
  readonly variance: number
  /** Population skewness m3 / m2^1.5; 0 where the variance is 0. */
  readonly skewness: number
  /** Raw population kurtosis m4 / m2², 3 for a normal; 3 where the variance is 0. */
  readonly kurtosis: number
}

/**
 * The first four population moments, in two passes. An empty sample has NaN everywhere but `count`.
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
