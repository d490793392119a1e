import { quantileSorted } from './descriptive-statistics.ts'
import { seededRandom } from './seeded-random.ts'

export interface BootstrapOptions {
  /** Number of resamples. The default is 2,000. */
  readonly draws?: number
  /** Mean length of a block in observations. The default is n^(1/3). */
  readonly meanBlock?: number
  /** The default is 1, so the same sample always gives the same interval. */
  readonly seed?: number
}

export interface BootstrapDraws {
  /** Mean of each resample, ascending. */
  readonly mean: Float64Array
  /** Sharpe ratio per observation (population deviation) of each resample, ascending; 0 for a constant resample. */
  readonly sharpe: Float64Array
}

/**
 * Resamples a series with the stationary bootstrap. Each resample of n observations consists of blocks that start at a
 * random place and have geometric lengths; the series wraps around at its end. Running totals give the sum of a block in
 * one step, so a draw costs about n/meanBlock steps.
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
 * The central interval of ascending draws, by linear interpolation (type 7 quantiles). `level` is a fraction.
 *
 * @example centralInterval([0, 1, 2, 3, 4], 0.5) // [1, 3]
 */
export function centralInterval(ascending: ArrayLike<number>, level = 0.95): [number, number] {
  return [quantileSorted(ascending, (1 - level) / 2), quantileSorted(ascending, (1 + level) / 2)]
}

/** Running totals of the deviations from the mean and of their squares. Centring keeps digits when levels are large. */
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

/** Sum over `length` ≤ n places from `start`, wrapping around at the end. */
function span(totals: Float64Array, start: number, length: number): number {
  const count = totals.length - 1
  const end = start + length
  if (end <= count) return totals[end]! - totals[start]!
  return totals[count]! - totals[start]! + totals[end - count]!
}

/** A geometric block length with the given mean, by inversion of a uniform number in [0, 1). */
function geometric(uniform: number, mean: number): number {
  if (mean <= 1) return 1
  return 1 + Math.floor(Math.log1p(-uniform) / Math.log1p(-1 / mean))
}
