import { DAY } from './interval.ts'
import type { Series } from './series.ts'
import { NIGHT } from './session.ts'

/** Whether so many seconds between the opens of two bars shorter than a day are a night, or more of them. */
export const isNight = (hole: number, interval: number): boolean =>
  interval < DAY && hole >= Math.max(NIGHT, 2 * interval)

export interface Days {
  /** One bar a stretch of trading between nights. */
  readonly series: Series
  /** Place of each day's first bar in the series it was joined from, ascending. */
  readonly firsts: Float64Array
}

/** Bars shorter than a day joined by what lies between nights, so that a night can be judged as of daily bars. */
export function joinNights(series: Series, interval: number): Days {
  const { time, open, high, low, close, volume, rows, factor, count } = series
  const places: number[] = []
  for (let i = 0; i < count; i += 1) if (i === 0 || isNight(time[i]! - time[i - 1]!, interval)) places.push(i)
  const firsts = Float64Array.from(places)
  const each = (of: (start: number, end: number) => number): Float64Array =>
    Float64Array.from(firsts, (start, day) => of(start, firsts[day + 1] ?? count))
  const first = (column: Float64Array): Float64Array => each((start) => column[start]!)
  return {
    firsts,
    series: {
      count: firsts.length,
      rows: Int32Array.from(firsts, (start) => rows[start]!),
      time: first(time),
      open: first(open),
      high: each((start, end) => high.subarray(start, end).reduce((most, price) => Math.max(most, price))),
      low: each((start, end) => low.subarray(start, end).reduce((least, price) => Math.min(least, price))),
      close: each((_, end) => close[end - 1]!),
      volume: volume && each((start, end) => volume.subarray(start, end).reduce((sum, one) => sum + (one || 0), 0)),
      factor: first(factor),
    },
  }
}
