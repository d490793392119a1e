import { lowerBound } from './sorted-window.ts'

/**
 * The median of the `width` values centred on each place, of fewer at the ends. NaN values are skipped; the median of no
 * values is NaN. Each step costs one binary search and one move of memory.
 *
 * @example centredMedian([1, 9, 2, 3, 8], 3) // [5, 2, 3, 3, 5.5]
 */
export function centredMedian(values: ArrayLike<number>, width: number): Float64Array {
  const half = width >> 1
  const count = values.length
  const sorted = new Float64Array(width + 1)
  const medians = new Float64Array(count)
  let size = 0
  const insert = (value: number): void => {
    if (Number.isNaN(value)) return
    const place = lowerBound(sorted, size, value)
    sorted.copyWithin(place + 1, place, size)
    sorted[place] = value
    size += 1
  }
  const remove = (value: number): void => {
    if (Number.isNaN(value)) return
    const place = lowerBound(sorted, size, value)
    sorted.copyWithin(place, place + 1, size)
    size -= 1
  }
  for (let i = 0; i < Math.min(half, count); i += 1) insert(values[i]!)
  for (let i = 0; i < count; i += 1) {
    if (i + half < count) insert(values[i + half]!)
    if (i - half - 1 >= 0) remove(values[i - half - 1]!)
    medians[i] = size === 0 ? NaN : (sorted[(size - 1) >> 1]! + sorted[size >> 1]!) / 2
  }
  return medians
}

/**
 * The median of up to `reach` values on each side of each place, without the place itself. NaN values are skipped.
 *
 * @example neighbourMedian([1, 9, 2, 3, 8], 1) // [9, 1.5, 6, 5, 3]
 */
export function neighbourMedian(values: ArrayLike<number>, reach: number): Float64Array {
  const count = values.length
  const around = new Float64Array(2 * reach)
  return Float64Array.from({ length: count }, (_, i) => {
    let size = 0
    for (let j = Math.max(0, i - reach); j <= Math.min(count - 1, i + reach); j += 1) {
      const value = values[j]!
      if (j === i || Number.isNaN(value)) continue
      let place = size
      for (; place > 0 && around[place - 1]! > value; place -= 1) around[place] = around[place - 1]!
      around[place] = value
      size += 1
    }
    return size === 0 ? NaN : (around[(size - 1) >> 1]! + around[size >> 1]!) / 2
  })
}

/**
 * The median of values in any order; NaN for an empty list.
 *
 * @example median([4, 1, 3, 2]) // 2.5
 */
export function median(values: ArrayLike<number>): number {
  const sorted = Float64Array.from(values).sort()
  const size = sorted.length
  return size === 0 ? NaN : (sorted[(size - 1) >> 1]! + sorted[size >> 1]!) / 2
}
