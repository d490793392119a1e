import type { Bars } from './bar-input.ts'
import { DAY } from './bar-times.ts'
import { centredMedian, neighbourMedian } from '../lib/quant/rolling-median.ts'

/** Usable bars in order of time. `rows` holds the row of the request that each bar came from. */
export interface Series {
  readonly count: number
  readonly rows: Int32Array
  readonly time: Float64Array
  readonly open: Float64Array
  readonly high: Float64Array
  readonly low: Float64Array
  readonly close: Float64Array
  /** NaN if missing or below zero; null if no row has a volume. */
  readonly volume: Float64Array | null
  /** Adjustment for later splits: prices were divided by it and volumes multiplied. 1 without a split. */
  readonly factor: Float64Array
}

/** Selects rows of the request, in the given order. */
export function selectRows(bars: Bars, rows: Int32Array): Series {
  const take = (column: Float64Array): Float64Array => Float64Array.from(rows, (row) => column[row]!)
  return {
    count: rows.length,
    rows,
    time: take(bars.time),
    open: take(bars.open),
    high: take(bars.high),
    low: take(bars.low),
    close: take(bars.close),
    volume: bars.volume && take(bars.volume).map((value) => (value >= 0 ? value : NaN)),
    factor: new Float64Array(rows.length).fill(1),
  }
}

/** The series without the marked places. */
export function without(series: Series, marked: Uint8Array): Series {
  const keep = (column: Float64Array): Float64Array => column.filter((_, i) => marked[i] === 0)
  const rows = series.rows.filter((_, i) => marked[i] === 0)
  return { ...mapColumns(series, keep), count: rows.length, rows }
}

/** Adjusts the series for splits: divides earlier prices by the factor and multiplies earlier volumes. */
export function adjust(series: Series, splits: readonly { readonly at: number; readonly factor: number }[]): Series {
  const factor = new Float64Array(series.count).fill(1)
  for (const split of splits) factor[split.at - 1]! *= split.factor
  for (let i = series.count - 2; i >= 0; i -= 1) factor[i]! *= factor[i + 1]!
  const divide = (column: Float64Array): Float64Array => column.map((price, i) => price / factor[i]!)
  const { time } = series
  const volume = series.volume && series.volume.map((value, i) => value * factor[i]!)
  return { ...mapColumns(series, divide), time, volume, factor }
}

function mapColumns(
  { time, open, high, low, close, volume, factor, ...rest }: Series,
  change: (column: Float64Array) => Float64Array,
): Series {
  const prices = { open: change(open), high: change(high), low: change(low), close: change(close) }
  return { ...rest, ...prices, time: change(time), volume: volume && change(volume), factor: change(factor) }
}

/** What is usual around each bar. All statistical checks measure in these scales. */
export interface Scales {
  /** Log range of each bar, ln(high/low). */
  readonly range: Float64Array
  /**
   * Local scale: the larger of the median movement of ten neighbours and the median movement of those of 101 bars that
   * moved, at least 0.0003 and a step of the price. Bars that hardly moved are left out, because they do not show how far
   * bars move.
   */
  readonly local: Float64Array
  /** Volume divided by the median of the 51 bars around; 1 if unknown. */
  readonly activity: Float64Array
  /** Median volume of the 51 bars around; NaN if unknown. */
  readonly usualVolume: Float64Array
}

const FLOOR = 0.0003

/**
 * Measures the scales of a series.
 *
 * @param interval length of a bar, seconds
 * @param step smallest step of the prices as sent; 0 if there is none
 */
export function measureScales(series: Series, interval: number, step: number): Scales {
  const { count, high, low, volume, factor } = series
  const range = high.map((value, i) => Math.log(value / low[i]!))
  const movement = movementOf(series, range, interval)
  const moved = movement.map((value) => (value > FLOOR ? value : NaN))
  const [near, wide] = [neighbourMedian(movement, 5), centredMedian(moved, 101)]
  const local = range.map((_, i) =>
    Math.max(near[i] || 0, wide[i] || 0, FLOOR, Math.log1p(step / (low[i]! * factor[i]!))),
  )
  const usualVolume = volume ? centredMedian(volume, 51) : new Float64Array(count).fill(NaN)
  const activity = usualVolume.map((usual, i) => {
    const value = volume?.[i] ?? NaN
    return usual > 0 && value >= 0 ? value / usual : 1
  })
  return { range, local, activity, usualVolume }
}

/**
 * How far each bar moved. Bars shorter than a day are measured from the previous close, because most bars of thin markets
 * are flat and prices move between them. Longer bars use their own range so that nights do not count; they use the
 * previous close only if they are flat.
 */
function movementOf({ high, low, close }: Series, range: Float64Array, interval: number): Float64Array {
  return range.map((own, i) => {
    const before = close[i - 1] ?? low[i]!
    return interval >= DAY && own > 0 ? own : Math.log(Math.max(high[i]!, before) / Math.min(low[i]!, before))
  })
}
