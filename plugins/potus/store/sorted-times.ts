import type { Span } from './held-values.ts'

/** Times in ascending order, for counts within a range and for the neighbours of a time. */
export class SortedTimes {
  readonly #times: number[] = []

  get size(): number {
    return this.#times.length
  }

  /** Adds times in any order. Quick if they are later than those that are there. */
  add(times: readonly number[]): void {
    let isSorted = true
    for (const time of times) {
      if (this.#times.length > 0 && time < this.#times.at(-1)!) isSorted = false
      this.#times.push(time)
    }
    if (!isSorted) this.#times.sort((a, b) => a - b)
  }

  /** Number of times in [from, to]. */
  count(from: number, to: number): number {
    return Math.max(0, this.#countUntil(to) - this.#countUntil(from - 1))
  }

  /** The latest time until `time`; null if there is none. */
  last(time: number): number | null {
    return this.#times[this.#countUntil(time) - 1] ?? null
  }

  /** The earliest time after `time`; null if there is none. */
  next(time: number): number | null {
    return this.#times[this.#countUntil(time)] ?? null
  }

  /** The moments around `asOf` at which the same times are in the past, and the same in the last `reach` milliseconds. */
  unchangedAround(asOf: number, reach: number): Span {
    const [entered, left] = [this.#countUntil(asOf), this.#countUntil(asOf - reach)]
    return {
      from: Math.max(this.#times[entered - 1] ?? -Infinity, (this.#times[left - 1] ?? -Infinity) + reach),
      until: Math.min(this.#times[entered] ?? Infinity, (this.#times[left] ?? Infinity) + reach),
    }
  }

  /** Number of times until `time`, inclusive. Times are whole numbers. */
  #countUntil(time: number): number {
    return countUntil(this.#times, time, (at) => at)
  }
}

/** Number of rows whose time is at most `time`; the rows are in ascending order of time. */
export function countUntil<Row>(rows: readonly Row[], time: number, timeOf: (row: Row) => number): number {
  let [low, high] = [0, rows.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (timeOf(rows[middle] as Row) <= time) low = middle + 1
    else high = middle
  }
  return low
}
