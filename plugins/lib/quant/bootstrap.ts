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

const BLOCKS_AT_ONCE = 64

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
  const last = 2 * count
  const { draws = 2000, meanBlock = Math.cbrt(count), seed = 1 } = options
  const random = seededRandom(seed)
  const { centre, totals } = runningTotals(values)
  const decay = meanBlock > 1 ? Math.log1p(-1 / meanBlock) : -Infinity
  const sureLengths = sureBlockLengths(decay)
  // Some blocks are drawn before any is added, so that the processor fetches their totals from memory at the same time.
  const starts = new Int32Array(BLOCKS_AT_ONCE)
  const ends = new Int32Array(BLOCKS_AT_ONCE)
  const mean = new Float64Array(draws)
  const sharpe = new Float64Array(draws)
  for (let draw = 0; draw < draws; draw += 1) {
    let sum = 0
    let squares = 0
    for (let drawn = 0; drawn < count;) {
      let blocks = 0
      for (; blocks < BLOCKS_AT_ONCE && drawn < count; blocks += 1) {
        const start = Math.floor(random() * count)
        const uniform = random()
        const length = Math.min(sureLengths[(uniform * PARTS) | 0]! || blockLength(uniform, decay), count - drawn)
        starts[blocks] = 2 * start
        ends[blocks] = 2 * (start + length)
        drawn += length
      }
      for (let block = 0; block < blocks; block += 1) {
        const start = starts[block]!
        const end = ends[block]!
        if (end <= last) {
          sum += totals[end]! - totals[start]!
          squares += totals[end + 1]! - totals[start + 1]!
        } else {
          sum += totals[last]! - totals[start]! + totals[end - last]!
          squares += totals[last + 1]! - totals[start + 1]! + totals[end - last + 1]!
        }
      }
    }
    const shifted = sum / count
    const variance = squares / count - shifted * shifted
    mean[draw] = centre + shifted
    sharpe[draw] = variance > 0 ? mean[draw]! / Math.sqrt(variance) : 0
  }
  return { mean: mean.sort(), sharpe: sharpe.sort() }
}

/** Lengths of blocks are geometric, by inversion of a uniform number in [0, 1). */
const blockLength = (uniform: number, decay: number): number => 1 + Math.floor(Math.log1p(-uniform) / decay)

/** How many equal parts of [0, 1) have a length that is looked up, which takes less time than a logarithm. */
const PARTS = 8192
/** Far more than the rounding error of a length before it is rounded down. */
const MARGIN = 1e-9

/** For each part of [0, 1), the length that all of its numbers give; 0 if they give several. */
function sureBlockLengths(decay: number): Float64Array {
  return Float64Array.from({ length: PARTS }, (_, part) => {
    const [low, high] = [part, part + 1].map((edge) => Math.log1p(-edge / PARTS) / decay) as [number, number]
    const shortest = 1 + Math.floor(Math.max(0, low - MARGIN))
    return shortest === 1 + Math.floor(high + MARGIN) ? shortest : 0
  })
}

/**
 * The central interval of ascending draws, by linear interpolation (type 7 quantiles). `level` is a fraction.
 *
 * @example centralInterval([0, 1, 2, 3, 4], 0.5) // [1, 3]
 */
export function centralInterval(ascending: ArrayLike<number>, level = 0.95): [number, number] {
  return [quantileSorted(ascending, (1 - level) / 2), quantileSorted(ascending, (1 + level) / 2)]
}

/**
 * Running totals of the deviations from the mean and of their squares, in turn, because a block needs both at the same
 * places. Centring keeps digits when levels are large.
 */
function runningTotals(values: ArrayLike<number>): { centre: number; totals: Float64Array } {
  const count = values.length
  let sum = 0
  for (let i = 0; i < count; i += 1) sum += values[i]!
  const centre = sum / count
  const totals = new Float64Array(2 * (count + 1))
  for (let i = 0; i < count; i += 1) {
    const deviation = values[i]! - centre
    totals[2 * i + 2] = totals[2 * i]! + deviation
    totals[2 * i + 3] = totals[2 * i + 1]! + deviation * deviation
  }
  return { centre, totals }
}

/** Running totals of a series over two rounds, so that a block may pass its end. */
export function twoRounds(values: ArrayLike<number>): Float64Array {
  const count = values.length
  const totals = new Float64Array(2 * count + 1)
  for (let i = 0; i < 2 * count; i += 1) totals[i + 1] = totals[i]! + values[i % count]!
  return totals
}

/**
 * Draws the blocks of resamples of `count` observations, for several series that are resampled together, and sums a series,
 * given by `twoRounds`, over them.
 */
export function createBlocks(count: number, meanBlock: number, seed: number) {
  const random = seededRandom(seed)
  const decay = meanBlock > 1 ? Math.log1p(-1 / meanBlock) : -Infinity
  const starts = new Int32Array(count)
  const ends = new Int32Array(count)
  return {
    /** Returns the number of blocks. */
    draw(): number {
      let blocks = 0
      for (let drawn = 0; drawn < count; blocks += 1) {
        const start = Math.floor(random() * count)
        const length = Math.min(blockLength(random(), decay), count - drawn)
        starts[blocks] = start
        ends[blocks] = start + length
        drawn += length
      }
      return blocks
    },
    sum(totals: Float64Array, blocks: number): number {
      let sum = 0
      for (let block = 0; block < blocks; block += 1) sum += totals[ends[block]!]! - totals[starts[block]!]!
      return sum
    },
  }
}
