/** Estimates the spread, the volatility and the turnover of a symbol from its bars. */
import type { Bars } from '../../schemas/types.d.ts'
import { edgeSpread } from '../lib/quant/spread-estimators.ts'
import { garmanKlass } from '../lib/quant/volatility-estimators.ts'
import { moments, quantileSorted } from '../lib/quant/descriptive-statistics.ts'

export interface BarFigures {
  /** The EDGE estimate, clipped at zero; null if it cannot be estimated. */
  readonly spreadBps: number | null
  /** Daily volatility, a fraction; null if no price moved. */
  readonly sigmaDaily: number | null
  /** Average daily turnover, USD; null if nothing traded. */
  readonly advUsd: number | null
  /** Close of the newest bar, and the end of that bar in epoch seconds. It may belong to the running session. */
  readonly lastClose: number
  readonly newest: number
  /** Open of the first bar used and end of the last, epoch seconds. */
  readonly from: number
  readonly to: number
  readonly count: number
  readonly intervalSeconds: number
}

/** A range of bars: [from, to). */
interface Stretch {
  readonly from: number
  readonly to: number
}

const DAY = 86_400
const MIN_BARS = { intraday: 60, daily: 5 }
/** EDGE is computed over this many bars (an hour of minutes). Over a whole day the most volatile hours would dominate. */
const EDGE_BARS = 60
/** With fewer bars per day, EDGE is computed over this many bars (a month of days). */
const BLOCK = 21
/** Number of daily bars for volatility and turnover. The spread uses all daily bars. */
const RECENT_DAYS = 30
/** The variance of a day counts as at most this many times the usual one, because daily bars contain misprints. */
const LARGEST_VARIANCE = 10
const RETURN_SECONDS = 300

/**
 * Computes the figures of bars, oldest first, at any interval up to a day. Returns null for fewer than 60 bars, or 5 daily
 * bars. `dayMinutes` is the length of a trading day.
 *
 * Spread: EDGE over parts of at least 60 bars of a UTC day, averaged with its sign and then clipped at zero. If no day has
 * 60 bars: EDGE over blocks of 21 bars. Their mean counts only if it is more than two standard errors above zero, because
 * the volatility of long bars hides small spreads.
 * Volatility: five-minute returns within the days, √(Σr² day/covered). For daily bars: the root of the mean Garman-Klass
 * variance of the last 30.
 * Turnover: Σ volume · close, scaled to one day in the same way.
 */
export function barFigures(bars: Bars, dayMinutes: number): BarFigures | null {
  const { count, interval_seconds, time, close, volume } = bars
  const isDaily = interval_seconds >= DAY
  if (count < (isDaily ? MIN_BARS.daily : MIN_BARS.intraday)) return null
  const days = daysOf(bars)
  const recent = { from: isDaily ? Math.max(0, count - RECENT_DAYS) : 0, to: count }
  const covered = isDaily ? recent.to - recent.from : minutesOf(bars, days) / dayMinutes
  const variance = isDaily ? meanRange(bars, recent) : squaredReturns(bars, days) / covered
  const turnover = sumOver(recent, (i) => volume[i]! * close[i]!) / covered
  const to = time[count - 1]! + interval_seconds
  return {
    spreadBps: spreadOf(bars, days),
    sigmaDaily: variance > 0 ? Math.sqrt(variance) : null,
    advUsd: turnover > 0 ? turnover : null,
    lastClose: close[count - 1]!,
    newest: to,
    from: time[0]!,
    to,
    count,
    intervalSeconds: interval_seconds,
  }
}

function sumOver({ from, to }: Stretch, of: (i: number) => number): number {
  let sum = 0
  for (let i = from; i < to; i += 1) sum += of(i)
  return sum
}

/** Splits bars by UTC day. A session in New York lies within one UTC day. */
export function daysOf({ count, time }: Pick<Bars, 'count' | 'time'>): Stretch[] {
  const days: Stretch[] = []
  for (let from = 0; from < count;) {
    const day = Math.floor(time[from]! / DAY)
    let to = from + 1
    while (to < count && Math.floor(time[to]! / DAY) === day) to += 1
    days.push({ from, to })
    from = to
  }
  return days
}

function minutesOf({ time, interval_seconds }: Bars, days: readonly Stretch[]): number {
  return days.reduce((sum, { from, to }) => sum + (time[to - 1]! - time[from]! + interval_seconds) / 60, 0)
}

/** The spread in bps; null if it cannot be estimated. */
function spreadOf(bars: Bars, days: readonly Stretch[]): number | null {
  const whole = days.flatMap(hoursOf)
  const stretches = whole.length > 0 ? whole : blocksOf(bars.count)
  const spreads = stretches.map(({ from, to }) => edgeOf(bars, from, to)).filter((spread) => spread !== null)
  if (spreads.length === 0) return null
  const { mean, variance } = moments(spreads)
  if (whole.length > 0) return 1e4 * Math.max(0, mean)
  return mean > 2 * Math.sqrt(variance / (spreads.length - 1)) ? 1e4 * mean : null
}

/** Splits a day into equal parts of at least 60 bars; none if it has fewer. */
function hoursOf({ from, to }: Stretch): Stretch[] {
  const parts = Math.floor((to - from) / EDGE_BARS)
  const edge = (part: number): number => from + Math.floor(((to - from) * part) / parts)
  return Array.from({ length: parts }, (_, part) => ({ from: edge(part), to: edge(part + 1) }))
}

/** Whole blocks of 21 bars, counted back from the last bar. */
function blocksOf(count: number): Stretch[] {
  return Array.from({ length: Math.floor(count / BLOCK) }, (_, i) => {
    const to = count - i * BLOCK
    return { from: to - BLOCK, to }
  })
}

function edgeOf({ open, high, low, close }: Bars, from: number, to: number): number | null {
  const [o, h, l, c] = [open, high, low, close].map((column) => column.subarray(from, to)) as [
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
  ]
  return edgeSpread({ open: o, high: h, low: l, close: c })
}

/** Sum of squared log returns over five minutes, or over the bars if they are longer. A day starts at its open. */
function squaredReturns({ time, open, close }: Bars, days: readonly Stretch[]): number {
  let sum = 0
  for (const { from, to } of days) {
    let last = open[from]!
    for (let i = from; i < to; i += 1) {
      const isEnd = i === to - 1 || Math.floor(time[i + 1]! / RETURN_SECONDS) > Math.floor(time[i]! / RETURN_SECONDS)
      if (!isEnd) continue
      sum += Math.log(close[i]! / last) ** 2
      last = close[i]!
    }
  }
  return sum
}

function meanRange({ open, high, low, close }: Bars, { from, to }: Stretch): number {
  const variances = Array.from({ length: to - from }, (_, i) =>
    garmanKlass(open[from + i]!, high[from + i]!, low[from + i]!, close[from + i]!),
  )
  const usual = quantileSorted(
    variances.toSorted((a, b) => a - b),
    0.5,
  )
  return moments(variances.map((variance) => Math.min(variance, LARGEST_VARIANCE * usual))).mean
}
