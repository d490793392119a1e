import { median } from '../lib/quant/rolling-median.ts'
import { lowerBound } from '../lib/quant/sorted-window.ts'
import { DAY } from './bar-times.ts'
import type { Series } from './clean-series.ts'
import { staleRuns } from './stale-runs.ts'
import { NIGHT } from './trading-session.ts'

export interface Split {
  /** Place in the series of the first bar at the new level. */
  readonly at: number
  readonly ratio: Ratio
  /** Log of the odds that it is a split and not a real jump: the sum of the evidence. */
  readonly logOdds: number
  readonly evidence: Evidence
}

/** What the odds are made of: the gap between close and open and its local scale, and log odds of each witness. */
interface Evidence {
  readonly gap: number
  readonly gap_scale: number
  readonly gap_log_odds: number
  readonly range_log_odds: number
  readonly turnover_log_odds: number
  readonly share_volume_log_odds: number
}

export const SPLIT_LOG_ODDS = 0

/** Smaller gaps are not looked at: 6:5 is the smallest ratio known. */
const SMALLEST = Math.log(1.17)
/** Share of the gap that the medians of five bars on either side must keep. */
const PERSISTENCE = 0.55
/** A rise above threefold that persists is a reverse split: real prices fall like that, but do not rise so. */
const SAFE_RISE = Math.log(3)
/** Where the usual gap is less than this share of the usual range, a day opens where the last one closed. */
const CONTINUOUS = 0.1
/** Least standard deviation of gaps: from bar to bar within trading, and over a night. */
const LEAST_GAP = { trading: 0.002, night: 0.004 }
/** Splits, and overnight jumps beyond the smallest gap, per bar of a day. */
const SPLIT_RATE = 4e-4
const JUMP_RATE = 2.4e-4
/** Real jumps beyond the smallest gap: shares and mean lengths of two exponentials, news and ruin. */
const JUMPS = [
  [0.97, 0.15],
  [0.03, 0.8],
] as const

/**
 * Splits that were not adjusted for, by a likelihood ratio for each gap between a close and the next open above 17%:
 * under a split the gap lies around the log of a ratio with the local scale of gaps (Student, 3 degrees), weighted by
 * how often that ratio is announced; under a real jump it lies in one of two exponential tails or in the Student tail of
 * local gaps (3 degrees; 10 within trading, where jumps that last hardly occur). The range of the bar, its turnover
 * (unchanged by a split, explosive in a crash) and the lasting change of share volume are added. Nights between shorter
 * bars are judged as of daily ones. Reported above log odds of 0. Without volume the odds must be e² to make up for the
 * missing witness.
 *
 * @example a close of 645.57 and an open of 92.69 on AAPL, 2014-06-09: 7:1
 */
export function findSplits(series: Series, interval: number): Split[] {
  const least = SPLIT_LOG_ODDS + (series.volume ? 0 : 2)
  return candidates(series, interval).filter(({ logOdds }) => logOdds > least)
}

/**
 * The likeliest ratio of every gap that is large enough, lasts, and follows neither a hole of more than 15 days nor a
 * stale run, after which prices catch up with what they missed.
 */
function candidates(series: Series, interval: number): Split[] {
  const found: Split[] = []
  let days: Days | null = null
  const thaws = new Set(staleRuns(series).runs.map(({ start, length }) => start + length))
  for (let at = 1; at < series.count; at += 1) {
    const gap = Math.log(series.open[at]! / series.close[at - 1]!)
    const hole = series.time[at]! - series.time[at - 1]!
    if (Math.abs(gap) < SMALLEST || hole > 15 * DAY || thaws.has(at)) continue
    if (levelChange(series, at) / gap < PERSISTENCE) continue
    // A night between short bars is judged as of daily bars.
    const place = isNight(hole, interval)
      ? nightOf((days ??= joinNights(series, interval)), at)
      : placeOf(series, at, interval)
    const seen = sightOf(place, gap)
    const odds = RATIOS.filter(({ factor }) => factor > 1 === gap < 0).map((ratio) => {
      const evidence = evidenceOf(seen, ratio)
      return { at, ratio, logOdds: sumOf(evidence), evidence }
    })
    found.push(odds.reduce((a, b) => (b.logOdds > a.logOdds ? b : a)))
  }
  return found
}

/** Where a gap is, and what kind of gap it is. */
interface Place {
  readonly series: Series
  readonly at: number
  /** Length of a bar, at most 1. */
  readonly days: number
  /** Opens as trading goes on, which does not jump like a night does. */
  readonly isTrading: boolean
}

/** Short bars open as trading goes on, and so do the days of a market that never rests. */
function placeOf(series: Series, at: number, interval: number): Place {
  if (interval < DAY) return { series, at, days: interval / DAY, isTrading: true }
  const [from, to] = [Math.max(0, at - 4), Math.min(series.count - 1, at + 4)]
  const rests = to - from < 7 || series.time[to]! - series.time[from]! > (to - from) * interval
  const isTrading = !rests && medianAround(series, at, gapOf) < CONTINUOUS * medianAround(series, at, rangeOf)
  return { series, at, days: 1, isTrading }
}

function nightOf({ series, firsts }: Days, at: number): Place {
  return { series, at: lowerBound(firsts, firsts.length, at), days: 1, isTrading: false }
}

/** Log of the median price of five bars from `at` on over that of five before. */
export function levelChange({ close }: Series, at: number): number {
  return Math.log(median(close.subarray(at, at + 5)) / median(close.subarray(Math.max(0, at - 5), at)))
}

function sumOf({ gap_log_odds, range_log_odds, turnover_log_odds, share_volume_log_odds }: Evidence): number {
  return gap_log_odds + range_log_odds + turnover_log_odds + share_volume_log_odds
}

/** What is seen at a gap, whatever the ratio; NaN where it cannot be seen. */
interface Sight {
  readonly gap: number
  /** Local scale of gaps. */
  readonly scale: number
  readonly days: number
  readonly isTrading: boolean
  /** Logs of range, turnover and share volume over what was usual. */
  readonly range: number
  readonly turnover: number
  readonly shares: number
}

function sightOf({ series, at, days, isTrading }: Place, gap: number): Sight {
  const { close, volume, count } = series
  const window = (of: (i: number) => number, from: number, to: number): number => {
    const values: number[] = []
    for (let i = Math.max(0, from); i < Math.min(count, to); i += 1) if (of(i) > 0) values.push(of(i))
    return values.length < 3 ? NaN : median(values)
  }
  const range = (i: number): number => rangeOf(series, i)
  const turnover = (i: number): number => close[i]! * (volume?.[i] ?? NaN)
  const shares = (i: number): number => volume?.[i] ?? NaN
  const usualGap = 1.4826 * (medianAround(series, at, gapOf) || 0)
  return {
    gap,
    scale: Math.max(isTrading ? LEAST_GAP.trading : LEAST_GAP.night, usualGap),
    days,
    isTrading,
    range: Math.log(range(at) / window(range, at - 20, at)),
    turnover: Math.log(turnover(at) / window(turnover, at - 20, at)),
    shares: Math.log(window(shares, at + 1, at + 31) / window(shares, at - 30, at)),
  }
}

function evidenceOf(sight: Sight, ratio: Ratio): Evidence {
  const { gap, scale, days, isTrading } = sight
  const expected = -Math.log(ratio.factor)
  const split = SPLIT_RATE * days * ratio.popularity * student(gap - expected, scale, 3)
  const beyond = Math.abs(gap) - SMALLEST
  const density = JUMPS.reduce((sum, [share, length]) => sum + (share / length) * Math.exp(-beyond / length), 0)
  const tail = JUMP_RATE * days * 0.5 * density
  const rarity = (isTrading ? 100 : 1) * (gap > SAFE_RISE ? 100 : 1)
  const jump = tail / rarity + (gap > SAFE_RISE ? 0 : student(gap, scale, isTrading ? 10 : 3))
  return { gap, gap_scale: scale, gap_log_odds: Math.log(split / jump), ...witnesses(sight, expected) }
}

const gapOf = ({ open, close }: Series, i: number): number => Math.abs(Math.log(open[i]! / close[i - 1]!))
const rangeOf = ({ high, low }: Series, i: number): number => Math.log(high[i]! / low[i]!)

/** Median over the thirty bars on either side; NaN where there are none. */
function medianAround(series: Series, at: number, of: (series: Series, i: number) => number): number {
  const values: number[] = []
  for (let i = Math.max(1, at - 30); i <= Math.min(series.count - 1, at + 30); i += 1)
    if (i !== at) values.push(of(series, i))
  return median(values)
}

/** Log likelihood ratios of range, turnover and share volume, fitted on daily US stocks; 0 where they cannot be seen. */
function witnesses({ range, turnover, shares, days }: Sight, expected: number) {
  // Short bars make poorer witnesses.
  const weight = days < 1 ? 0.5 : 1
  return {
    range_log_odds: weight * clip(against(range, [0.15, 0.5], [0.8, 0.55]), 2),
    turnover_log_odds: weight * clip(against(turnover, [0, 0.45], [1.4, 0.65]), 6),
    share_volume_log_odds: weight * clip(against(shares, [-0.85 * expected, 0.5], [0.2, 0.45]), 3),
  }
}

type Shape = readonly [centre: number, scale: number]

/** Log likelihood ratio of what was seen, Student with 10 degrees under either story; 0 where nothing was seen. */
function against(seen: number, split: Shape, jump: Shape): number {
  if (!Number.isFinite(seen)) return 0
  return Math.log(student(seen - split[0], split[1], 10) / student(seen - jump[0], jump[1], 10))
}

function clip(value: number, limit: number): number {
  return Math.max(-limit, Math.min(limit, value))
}

const PEAK = { 3: 2 / (Math.PI * Math.sqrt(3)), 10: 315 / (256 * Math.sqrt(10)) }

/** Density of Student's t with 3 or 10 degrees of freedom, scaled. */
function student(x: number, scale: number, degrees: 3 | 10): number {
  return (PEAK[degrees] * (1 + (x / scale) ** 2 / degrees) ** (-(degrees + 1) / 2)) / scale
}

/** Split ratios and how often each is announced, as a share of all splits; rough, from years of US lists. */
const FORWARD: readonly (readonly [number, number, number])[] = [
  [2, 1, 0.4], [3, 1, 0.07], [4, 1, 0.04], [5, 1, 0.03], [6, 1, 0.005], [7, 1, 0.005], [8, 1, 0.004], [10, 1, 0.03],
  [15, 1, 0.004], [20, 1, 0.008], [25, 1, 0.003], [30, 1, 0.002], [50, 1, 0.003], [100, 1, 0.002],
  [3, 2, 0.18], [5, 4, 0.04], [4, 3, 0.015], [6, 5, 0.003], [5, 2, 0.006], [5, 3, 0.005], [7, 5, 0.001],
] // prettier-ignore
const REVERSE: readonly (readonly [number, number, number])[] = [
  [1, 2, 0.008], [1, 3, 0.01], [1, 4, 0.015], [1, 5, 0.02], [1, 6, 0.006], [1, 7, 0.006], [1, 8, 0.01], [1, 10, 0.04],
  [1, 12, 0.004], [1, 15, 0.01], [1, 20, 0.015], [1, 25, 0.006], [1, 30, 0.006], [1, 40, 0.004], [1, 50, 0.004],
  [1, 100, 0.002], [2, 3, 0.0002], [4, 5, 0.0001], [3, 4, 0.0001], [5, 6, 0.0001], [2, 5, 0.0001], [3, 5, 0.0001],
  [5, 7, 0.0001],
] // prettier-ignore

interface Ratio {
  /** "7:1": each old share became seven. */
  readonly name: string
  /** New shares per old share; prices before the split are divided by it. */
  readonly factor: number
  readonly popularity: number
}

export const RATIOS: readonly Ratio[] = [...FORWARD, ...REVERSE].map(([a, b, popularity]) => ({
  name: `${a}:${b}`,
  factor: a / b,
  popularity,
}))

/** Whether so many seconds between the opens of two bars shorter than a day are a night, or more of them. */
const isNight = (hole: number, interval: number): boolean => interval < DAY && hole >= Math.max(NIGHT, 2 * interval)

interface Days {
  /** One bar a stretch of trading between nights. */
  readonly series: Series
  /** Place of each day's first bar in the series it was joined from, ascending. */
  readonly firsts: Float64Array
}

/** Bars shorter than a day joined by what lies between nights, so that a night can be judged as of daily bars. */
function joinNights(series: Series, interval: number): Days {
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
