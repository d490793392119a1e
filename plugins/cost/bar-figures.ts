/** What the bars of a symbol say of its spread, its volatility and its turnover. */
import type { Bars } from '../../schemas/types.d.ts'
import { edgeSpread } from '../lib/quant/spread-estimators.ts'
import { garmanKlass } from '../lib/quant/volatility-estimators.ts'
import { moments, quantileSorted } from '../lib/quant/descriptive-statistics.ts'

export interface BarFigures {
  /** EDGE, clipped at zero; null where it cannot be told. */
  readonly spreadBps: number | null
  /** A fraction; null where nothing moved. */
  readonly sigmaDaily: number | null
  /** USD; null where nothing traded. */
  readonly advUsd: number | null
  /** Close of the newest bar known, and its end, epoch seconds: of the session that is going on too. */
  readonly lastClose: number
  readonly newest: number
  /** Open of the first bar used and end of the last, epoch seconds. */
  readonly from: number
  readonly to: number
  readonly count: number
  readonly intervalSeconds: number
}

/** A stretch of bars: [from, to). */
interface Stretch {
  readonly from: number
  readonly to: number
}

const DAY = 86_400
const LEAST_BARS = { intraday: 60, daily: 5 }
/** EDGE is taken of so many bars of a day at a time, an hour of minutes: of a whole day its most volatile hours decide. */
const EDGE_BARS = 60
/** Then bars are taken so many at a time, a month of days. */
const BLOCK = 21
/** Daily bars behind volatility and turnover; the spread takes all there are. */
const RECENT_DAYS = 30
/** A day's variance counts as at most so many times the usual one: daily bars keep misprints. */
const LARGEST_VARIANCE = 10
const RETURN_SECONDS = 300

/**
 * Figures of bars, oldest first, at any interval up to a day; null where there are too few (60, or 5 of a day).
 * `dayMinutes` is the length of a trading day.
 *
 * Spread: EDGE of every 60 bars or more of a UTC day, an hour of minutes, averaged with its sign, then clipped at zero.
 * Where no day has as many, EDGE of blocks of 21 bars, whose mean counts only when it is more than two standard errors above
 * zero: in long bars a small spread drowns in volatility. Volatility: five-minute returns within the days,
 * √(Σr² day/covered); of daily bars the root of the mean Garman-Klass variance of the last 30. Turnover: Σ volume · close,
 * brought to one day alike.
 */
export function barFigures(bars: Bars, dayMinutes: number): BarFigures | null {
  const { count, interval_seconds, time, close, volume } = bars
  const isDaily = interval_seconds >= DAY
  if (count < (isDaily ? LEAST_BARS.daily : LEAST_BARS.intraday)) return null
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

/** UTC days: a session of New York lies within one. */
function daysOf({ count, time }: Bars): Stretch[] {
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

/** In bps; null where it cannot be told. */
function spreadOf(bars: Bars, days: readonly Stretch[]): number | null {
  const whole = days.flatMap(hoursOf)
  const stretches = whole.length > 0 ? whole : blocksOf(bars.count)
  const spreads = stretches.map(({ from, to }) => edgeOf(bars, from, to)).filter((spread) => spread !== null)
  if (spreads.length === 0) return null
  const { mean, variance } = moments(spreads)
  if (whole.length > 0) return 1e4 * Math.max(0, mean)
  return mean > 2 * Math.sqrt(variance / (spreads.length - 1)) ? 1e4 * mean : null
}

/** A day in equal parts of at least 60 bars; none where it has fewer. */
function hoursOf({ from, to }: Stretch): Stretch[] {
  const parts = Math.floor((to - from) / EDGE_BARS)
  const edge = (part: number): number => from + Math.floor(((to - from) * part) / parts)
  return Array.from({ length: parts }, (_, part) => ({ from: edge(part), to: edge(part + 1) }))
}

/** Whole blocks, the last one ending with the last bar. */
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

/** Of five minutes, or of the bars where they are longer; the first of a day starts at its open. */
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
