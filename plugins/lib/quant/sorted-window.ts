import { quantileSorted } from './descriptive-statistics.ts'

/**
 * The last `capacity` values, both in order of arrival and in order of size. It is plain data, so callers can store and
 * restore it. Adding a value costs one binary search and one move of memory.
 */
export interface SortedWindow {
  readonly arrivals: Float64Array
  readonly sorted: Float64Array
  size: number
  /** Index in `arrivals` of the next value. */
  next: number
}

/** Creates an empty window over the last `capacity` values. */
export function createSortedWindow(capacity: number): SortedWindow {
  return { arrivals: new Float64Array(capacity), sorted: new Float64Array(capacity), size: 0, next: 0 }
}

/** Adds a value. A full window drops its oldest value first. Throws RangeError for NaN. */
export function pushSorted(window: SortedWindow, value: number): void {
  if (Number.isNaN(value)) throw new RangeError('a sorted window holds numbers only')
  const { arrivals, sorted } = window
  if (window.size === arrivals.length) {
    const oldest = lowerBound(sorted, window.size, arrivals[window.next]!)
    sorted.copyWithin(oldest, oldest + 1, window.size)
    window.size -= 1
  }
  const place = lowerBound(sorted, window.size, value)
  sorted.copyWithin(place + 1, place, window.size)
  sorted[place] = value
  arrivals[window.next] = value
  window.next = (window.next + 1) % arrivals.length
  window.size += 1
}

/**
 * The quantile of the values in the window (type 7) at `probability`, 0 to 1.
 *
 * @example after pushing 4, 1, 3, 2: windowQuantile(window, 0.65) // 2.95
 */
export function windowQuantile(window: SortedWindow, probability: number): number {
  return quantileSorted(window.sorted, probability, window.size)
}

/**
 * The index of the first of `size` ascending values that is not below `wanted`; `size` if all are below.
 *
 * @example lowerBound(Float64Array.of(1, 3, 3, 7), 4, 3) // 1
 */
export function lowerBound(sorted: Float64Array, size: number, wanted: number): number {
  let low = 0
  let high = size
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return low
}
