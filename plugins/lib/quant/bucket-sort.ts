/** A bucket with more values than this is sorted by the platform. */
const SMALL = 32

/**
 * Bucket sort: returns the values in ascending order, as the `sort` of a typed array does, in linear time while they are
 * spread evenly. There are as many buckets as values, all of one width between the least and the greatest value, and each
 * is sorted on its own.
 *
 * @example sortedByBuckets(Float64Array.of(3, -1, 2)) // -1, 2, 3
 */
export function sortedByBuckets(values: Float64Array): Float64Array {
  const n = values.length
  let [least, greatest] = [Infinity, -Infinity]
  for (let i = 0; i < n; i += 1) {
    const value = values[i]!
    if (value < least) least = value
    if (value > greatest) greatest = value
  }
  const scale = (n - 1) / (greatest - least)
  // No width: all values are equal, there are none, or one of them is infinite.
  if (!(scale > 0 && scale < Infinity)) return values.slice().sort()
  const bucket = new Int32Array(n)
  const ends = new Int32Array(n + 1)
  for (let i = 0; i < n; i += 1) {
    const place = Math.floor((values[i]! - least) * scale)
    // NaN belongs to no bucket.
    if (!(place < n)) return values.slice().sort()
    bucket[i] = place
    ends[place + 1]! += 1
  }
  for (let i = 0; i < n; i += 1) ends[i + 1]! += ends[i]!
  const sorted = new Float64Array(n)
  // Where the next value of each bucket goes.
  const next = ends.slice(0, n)
  for (let i = 0; i < n; i += 1) sorted[next[bucket[i]!]!++] = values[i]!
  for (let i = 0; i < n; i += 1) {
    const [from, to] = [ends[i]!, ends[i + 1]!]
    if (to - from > SMALL) sorted.subarray(from, to).sort()
    else sortFew(sorted, from, to)
  }
  return sorted
}

/** Insertion sort of [from, to). */
function sortFew(values: Float64Array, from: number, to: number): void {
  for (let i = from + 1; i < to; i += 1) {
    const value = values[i]!
    let at = i
    for (; at > from && values[at - 1]! > value; at -= 1) values[at] = values[at - 1]!
    values[at] = value
  }
}
