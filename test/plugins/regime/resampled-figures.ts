/** Intervals of figures that are functions of sums over days or weeks, by the stationary bootstrap of these. */
import { centralInterval, createBlocks, twoRounds } from '../../../plugins/lib/quant/bootstrap.ts'

export type Interval = readonly [low: number, high: number]

const DRAWS = 1000

/**
 * Returns the figures of all days, and the central 95% of those of 1,000 resamples with a mean block of n^(1/3) days. All columns
 * are resampled together.
 *
 * @param columns sums of each day, one array per quantity
 * @param figures what follows from the sums over all days
 */
export function resample<Name extends string>(
  columns: readonly Float64Array[],
  figures: (sums: readonly number[]) => Readonly<Record<Name, number>>,
): { readonly found: Readonly<Record<Name, number>>; readonly intervals: Readonly<Record<Name, Interval>> } {
  const count = columns[0]!.length
  const totals = columns.map(twoRounds)
  const blocks = createBlocks(count, Math.max(1, Math.cbrt(count)), 1)
  const found = figures(totals.map((column) => column[count]!))
  const names = Object.keys(found) as Name[]
  const draws = names.map(() => new Float64Array(DRAWS))
  for (let draw = 0; draw < DRAWS; draw += 1) {
    const length = blocks.draw()
    const drawn = figures(totals.map((column) => blocks.sum(column, length)))
    for (const [i, name] of names.entries()) draws[i]![draw] = drawn[name]
  }
  const intervals = Object.fromEntries(names.map((name, i) => [name, centralInterval(draws[i]!.sort())]))
  return { found, intervals: intervals as unknown as Record<Name, Interval> }
}

export const FIGURES = ['forward_vol_ratio', 'persistence_1h', 'brier', 'ece', 'qlike', 'rms_ratio'] as const
export type Resampled = Readonly<Record<(typeof FIGURES)[number], number>>

/** What is graded: labels with a probability, and a forecast of the log volatility of the next hour. */
export interface Forecasts {
  readonly minute: Float64Array
  readonly stepMinutes: number
  readonly volatile: ArrayLike<number>
  /** Of VOLATILE. */
  readonly probability: ArrayLike<number>
  readonly boundary: ArrayLike<number>
  readonly mean: ArrayLike<number>
  /** Log volatility of the hour after each step; NaN if unknown. */
  readonly forward: ArrayLike<number>
}

const BINS = 20
const [STAYED, FOLLOWED, SQUARES, JUDGED, RATIOS, QLIKE, FORWARD, KNOWN, MISSES] = [0, 1, 2, 3, 4, 5, 6, 8, 10] as const

/** Returns the sums of each day from which `figuresOfSums` follow. Volatilities are logs. */
export function sumsByDay(of: Forecasts): Float64Array[] {
  const { minute, stepMinutes, volatile, probability, boundary, mean, forward } = of
  const first = Math.floor(minute[0]! / 1440)
  const days = Math.floor(minute.at(-1)! / 1440) - first + 1
  const columns = Array.from({ length: MISSES + BINS }, () => new Float64Array(days))
  const hour = 60 / stepMinutes
  for (let i = 0; i < minute.length; i += 1) {
    const add = (column: number, value: number): void => {
      columns[column]![Math.floor(minute[i]! / 1440) - first]! += value
    }
    const label = volatile[i]!
    if (i + hour < minute.length) {
      add(FOLLOWED, 1)
      add(STAYED, volatile[i + hour] === label ? 1 : 0)
    }
    const after = forward[i]!
    if (Number.isNaN(after)) continue
    const above = after > boundary[i]! ? 1 : 0
    const confidence = label === 1 ? probability[i]! : 1 - probability[i]!
    const ratio = Math.exp(2 * (after - mean[i]!))
    add(JUDGED, 1)
    add(SQUARES, (probability[i]! - above) ** 2)
    add(RATIOS, ratio)
    add(QLIKE, ratio - Math.log(ratio) - 1)
    add(FORWARD + label, Math.exp(after))
    add(KNOWN + label, 1)
    add(MISSES + Math.min(BINS - 1, Math.floor(confidence * BINS)), (above === label ? 1 : 0) - confidence)
  }
  return columns
}

export function figuresOfSums(sums: readonly number[]): Resampled {
  const judged = sums[JUDGED]!
  return {
    forward_vol_ratio: sums[FORWARD + 1]! / sums[KNOWN + 1]! / (sums[FORWARD]! / sums[KNOWN]!),
    persistence_1h: sums[STAYED]! / sums[FOLLOWED]!,
    brier: sums[SQUARES]! / judged,
    ece: sums.slice(MISSES).reduce((miss, bin) => miss + Math.abs(bin), 0) / judged,
    qlike: sums[QLIKE]! / judged,
    rms_ratio: Math.sqrt(sums[RATIOS]! / judged),
  }
}
