import { quantileSorted } from './descriptive-statistics.ts'
import { seededRandom } from './seeded-random.ts'

export interface BootstrapOptions {
  /** Default 2,000. */
  readonly draws?: number
  /** Mean length of a block in observations; default n^(1/3). */
  readonly meanBlock?: number
  /** Default 1: the same sample always has the same interval. */
  readonly seed?: number
}

export interface BootstrapDraws {
  /** Mean of each resample, ascending. */
  readonly mean: Float64Array
  /** Sharpe ratio per observation (population deviation) of each resample, ascending; 0 where it does not vary. */
  readonly sharpe: Float64Array
}

/**
 * Stationary bootstrap: each resample of n observations is made of blocks that start anywhere and have geometric
 * lengths, the series taken as a circle. Sums of a block come from running totals, so a draw costs n/meanBlock steps.
 *
 * Source: Politis and Romano, "The stationary bootstrap", J. American Statistical Association 89 (1994) 1303-1313.
 *
 * @example stationaryBootstrap([3, 3, 3]).mean[0] // 3
 */
export function stationaryBootstrap(values: ArrayLike<number>, options: BootstrapOptions = {}): BootstrapDraws {
  const count = values.length
  const { draws = 2000, meanBlock = Math.cbrt(count), seed = 1 } = options
  const random = seededRandom(seed)
  const totals = runningTotals(values)
  const mean = new Float64Array(draws)
  const sharpe = new Float64Array(draws)
  for (let draw = 0; draw < draws; draw += 1) {
    let sum = 0
    let squares = 0
    for (let drawn = 0; drawn < count;) {
      const start = Math.floor(random() * count)
      const length = Math.min(geometric(random(), meanBlock), count - drawn)
      sum += span(totals.first, start, length)
      squares += span(totals.second, start, length)
      drawn += length
    }
    const shifted = sum / count
    const variance = squares / count - shifted * shifted
    mean[draw] = totals.centre + shifted
    sharpe[draw] = variance > 0 ? mean[draw]! / Math.sqrt(variance) : 0
  }
  return { mean: mean.sort(), sharpe: sharpe.sort() }
}

/**
 * Central interval of ascending draws by linear interpolation (type 7 quantiles).
 *
 * @example centralInterval([0, 1, 2, 3, 4], 0.5) // [1, 3]
 */
export function centralInterval(ascending: ArrayLike<number>, level = 0.95): [number, number] {
  return [quantileSorted(ascending, (1 - level) / 2), quantileSorted(ascending, (1 + level) / 2)]
}

/** Totals of deviations from the mean and of their squares, so that squares of large levels lose no digits. */
function runningTotals(values: ArrayLike<number>): { centre: number; first: Float64Array; second: Float64Array } {
  const count = values.length
  let sum = 0
  for (let i = 0; i < count; i += 1) sum += values[i]!
  const centre = sum / count
  const first = new Float64Array(count + 1)
  const second = new Float64Array(count + 1)
  for (let i = 0; i < count; i += 1) {
    const deviation = values[i]! - centre
    first[i + 1] = first[i]! + deviation
    second[i + 1] = second[i]! + deviation * deviation
  }
  return { centre, first, second }
}

/** Sum over `length` ≤ n places from `start`, going round the circle. */
function span(totals: Float64Array, start: number, length: number): number {
  const count = totals.length - 1
  const end = start + length
  if (end <= count) return totals[end]! - totals[start]!
  return totals[count]! - totals[start]! + totals[end - count]!
}

/** Length of a block: geometric with the given mean, by inversion of a uniform in [0, 1). */
function geometric(uniform: number, mean: number): number {
  if (mean <= 1) return 1
  return 1 + Math.floor(Math.log1p(-uniform) / Math.log1p(-1 / mean))
}
