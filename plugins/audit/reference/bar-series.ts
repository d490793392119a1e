import { nyseClosed } from '../../lib/time/nyse-calendar.ts'
import { DAY, dayOf } from '../trade-ledger.ts'

/** Reference bars of one symbol, oldest first. Times are opens in epoch milliseconds. */
export interface ReferenceSeries {
  readonly time: Float64Array
  readonly open: Float64Array
  readonly high: Float64Array
  readonly low: Float64Array
  readonly close: Float64Array
  /** NaN if unknown. */
  readonly volume: Float64Array
  /** 1 for a bar without trades, which says nothing about possible prices. */
  readonly idle: Uint8Array | null
  /** Days since 1970 that have a bar whose prices cannot be used. Without another bar, nothing is known of such a day. */
  readonly blankDays: ReadonlySet<number>
  /** Split factor that takes effect at the open of a bar (7 for 7:1), otherwise 1; null if the bars do not state splits. */
  readonly split: Float64Array | null
  /** Length of a bar in milliseconds, at most a day. */
  readonly interval: number
  /** Whether every day of trading has a bar. Bars of weeks and months stand only for the day that they are labelled with. */
  readonly hasEveryDay: boolean
  /** Whether the bars cover the whole life of the symbol, so that the first and last bar are its listing and delisting. */
  readonly isWhole: boolean
  /** Whether every day has a session. */
  readonly isContinuous: boolean
  /** Whether the symbol trades on the calendar of the New York Stock Exchange. */
  readonly isNyse: boolean
  /** Whether they are the median of several venues: a fill at one of them may lie outside, and has another volume and tick. */
  readonly isMedian: boolean
}

/** Why no bar belongs to a time. `unknown` says nothing about whether the market was open. */
type NoBar = 'closed_market' | 'before_listing' | 'after_delisting' | 'unknown'

/** New York is 5 hours behind UTC, or 4 in summer. No session is open in the hour between. */
const NEW_YORK_OFFSET = 5 * 3_600_000

/**
 * The index of the bar that a fill belongs to, or the reason why there is none. Daily bars are found by day: the written
 * date, or the New York date for a US equity and a time with a zone. Shorter bars contain the time from their open to
 * the next.
 */
export function barAt(series: ReferenceSeries, time: number, isZoned: boolean, isDaily: boolean): number | NoBar {
  const { time: opens, interval, hasEveryDay, blankDays, isWhole, isNyse } = series
  const last = opens.length - 1
  const hasDays = interval >= DAY
  const moment = hasDays ? dayStart(time, isZoned && !isDaily && isNyse) : time
  const noBar = (reason: NoBar): NoBar => (blankDays.has(Math.floor(moment / DAY)) ? 'unknown' : reason)
  if (moment < opens[0]!) return noBar(isWhole ? 'before_listing' : 'unknown')
  if (moment >= opens[last]! + interval) return noBar(isWhole ? 'after_delisting' : 'unknown')
  const index = lastAtOrBefore(opens, moment)
  if (moment < opens[index]! + interval) return index
  if (!hasEveryDay) return 'unknown'
  if (hasDays) return noBar('closed_market')
  const day = Math.floor(moment / DAY)
  const isQuiet = Math.floor(opens[index]! / DAY) !== day && Math.floor(opens[index + 1]! / DAY) !== day
  return isQuiet ? noBar('closed_market') : 'unknown'
}

/** Midnight of the day of a time. With `inNewYork`, hours up to 5:00 UTC belong to the previous day. */
export function dayStart(time: number, inNewYork: boolean): number {
  return Math.floor((inNewYork ? time - NEW_YORK_OFFSET : time) / DAY) * DAY
}

/** Index of the last bar that opens at or before a time; -1 if there is none. */
function lastAtOrBefore(opens: Float64Array, moment: number): number {
  let low = 0
  let high = opens.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (opens[middle]! <= moment) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** The most frequent step between bars in milliseconds; a day for a single bar. */
export function stepOf(time: Float64Array): number {
  const counts = new Map<number, number>()
  for (let i = 1; i < time.length; i += 1) {
    const step = time[i]! - time[i - 1]!
    if (step > 0) counts.set(step, (counts.get(step) ?? 0) + 1)
  }
  let [common, most] = [DAY, 0]
  for (const [step, count] of counts) if (count > most) [common, most] = [step, count]
  return common
}

/** Whether the bars include weekends, and whether all of their days are trading days in New York. */
export function calendarOf(time: Float64Array, hasEveryDay: boolean): Pick<ReferenceSeries, 'isContinuous' | 'isNyse'> {
  const days = new Set<number>()
  for (const open of time) days.add(Math.floor(open / DAY))
  let [weekends, closed] = [0, 0]
  for (const day of days) {
    const weekday = (day + 4) % 7
    if (weekday === 0 || weekday === 6) weekends += 1
    else if (nyseClosed(dayOf(day * DAY)) !== null) closed += 1
  }
  return { isContinuous: weekends > 0, isNyse: hasEveryDay && weekends + closed === 0 && days.size >= 20 }
}

/** Joins bars into daily bars. Returns daily bars unchanged. */
export function joinDays(series: ReferenceSeries): ReferenceSeries {
  if (series.interval >= DAY) return series
  const { time, open, high, low, close, volume, split } = series
  const firsts = Array.from(time.keys()).filter(
    (i) => i === 0 || Math.floor(time[i]! / DAY) > Math.floor(time[i - 1]! / DAY),
  )
  const ends = [...firsts.slice(1), time.length]
  const each = (of: (start: number, end: number) => number): Float64Array =>
    Float64Array.from(firsts, (start, index) => of(start, ends[index]!))
  return {
    ...series,
    interval: DAY,
    time: each((start) => Math.floor(time[start]! / DAY) * DAY),
    open: each((start) => open[start]!),
    high: each((start, end) => high.subarray(start, end).reduce((most, one) => Math.max(most, one))),
    low: each((start, end) => low.subarray(start, end).reduce((least, one) => Math.min(least, one))),
    close: each((_, end) => close[end - 1]!),
    volume: each((start, end) => volume.subarray(start, end).reduce((sum, one) => sum + one)),
    split: split && each((start, end) => split.subarray(start, end).reduce((product, one) => product * one)),
    idle: null,
  }
}
