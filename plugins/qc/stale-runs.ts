import type { AddFinding } from './finding-codes.ts'
import { formatBarTime } from './bar-times.ts'
import type { Series } from './clean-series.ts'

const MIN_RUN = 5
/** The rate comes from runs shorter than `short`. A run is stale if its length is expected less than `chance` times. */
const CHANCE = { short: 8, chance: 0.001 }

interface Run {
  readonly start: number
  readonly length: number
}

interface StaleRuns {
  readonly runs: readonly Run[]
  /** The length in bars from which a run is stale. */
  readonly least: number
}

/** Finds runs of flat bars at one price that are longer than chance allows, given the rate of such runs in the file. */
export function staleRuns({ count, open, high, low, close }: Series): StaleRuns {
  const isFlat = (i: number): boolean => high[i] === low[i] && open[i] === close[i] && open[i] === high[i]
  const runs: Run[] = []
  for (let i = 0; i < count; i += 1) {
    if (!isFlat(i)) continue
    const start = i
    while (i + 1 < count && isFlat(i + 1) && close[i + 1] === close[start]) i += 1
    runs.push({ start, length: i - start + 1 })
  }
  const lengths = runs.map(({ length }) => length)
  const least = Math.max(MIN_RUN, chanceLength(lengths, CHANCE))
  return { runs: runs.filter(({ length }) => length >= least), least }
}

/** Reports stale runs, each at its first bar. Returns the length from which a run is reported. */
export function checkStale(series: Series, add: AddFinding): number {
  const { rows, time, close, factor } = series
  const { runs, least } = staleRuns(series)
  for (const { start, length } of runs) {
    const until = formatBarTime(time[start + length - 1]!)
    add({
      code: 'stale_run',
      severity: 'warning',
      index: rows[start]!,
      field: 'bar',
      observed: length,
      expected: least - 1,
      score: length / least,
      confidence: 0.999,
      explanation: `${length} flat bars at ${close[start]! * factor[start]!} until ${until}; chance allows ${least - 1} in this file`,
    })
  }
  return least
}

/**
 * The length from which a run is longer than chance allows: the shortest L that is expected less than `chance` times in
 * the file, m·p^(L-1) < chance. Lengths are assumed geometric with ratio p. Only the m runs shorter than `short` are used
 * to estimate p, so that long stale runs do not raise their own limit.
 *
 * p solves the mean of a geometric distribution cut off at short - 1. For `short` = 3 that is p/(1+p) = n₂/(n₁+n₂).
 *
 * @example chanceLength([1, 1, 1, 2, 1, 1, 20], { short: 3, chance: 0.001 }) // 7: p is 0.18, six short runs
 */
export function chanceLength(
  lengths: readonly number[],
  { short, chance }: { readonly short: number; readonly chance: number },
): number {
  const counted = lengths.filter((length) => length < short)
  // The small addition allows for runs of two in a file that has none.
  const mean = 1 + (counted.reduce((sum, length) => sum + length - 1, 0) + 0.05) / (counted.length + 1)
  const ratio = ratioOfMean(mean, short - 1)
  return Math.max(1, Math.ceil(1 + Math.log(chance / Math.max(1, counted.length)) / Math.log(ratio)))
}

/** The ratio of a geometric distribution on 1 to `most` with the given mean, by bisection; at most 0.98. */
function ratioOfMean(mean: number, most: number): number {
  const meanOf = (ratio: number): number => {
    let [weight, total, sum] = [1, 0, 0]
    for (let length = 1; length <= most; length += 1) {
      total += weight
      sum += weight * length
      weight *= ratio
    }
    return sum / total
  }
  let [low, high] = [0, 0.98]
  for (let step = 0; step < 50; step += 1) {
    const middle = (low + high) / 2
    if (meanOf(middle) < mean) low = middle
    else high = middle
  }
  return (low + high) / 2
}
