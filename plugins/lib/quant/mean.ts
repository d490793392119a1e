/**
 * Arithmetic mean of the numbers that are there: NaN is left out. NaN where nothing is left.
 *
 * @example presentMean([1, NaN, 3]) // 2
 */
export function presentMean(values: ArrayLike<number>): number {
  let sum = 0
  let count = 0
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i]!
    if (Number.isNaN(value)) continue
    sum += value
    count += 1
  }
  return sum / count
}

/** Root of the size with the sign kept: √|x|·sign(x). How a spread is read from an estimated square that may be negative. */
export function signedRoot(x: number): number {
  return Math.sign(x) * Math.sqrt(Math.abs(x))
}
