import { median } from '../lib/quant/rolling-median.ts'
import { lowerBound } from '../lib/quant/sorted-window.ts'
import { longBreak } from './bar-interval.ts'
import { DAY } from './bar-times.ts'
import type { Series } from './clean-series.ts'
import { staleRuns } from './stale-runs.ts'
import { NIGHT } from './session-detection.ts'

export interface Split {
  /** Index in the series of the first bar at the new level. */
  readonly at: number
  readonly ratio: Ratio
  /** Log odds that it is a split and not a real jump: the sum of the evidence. */
  readonly logOdds: number
  readonly evidence: Evidence
}

/** The parts of the odds: the gap between close and open, its local scale, and the log odds of each piece of evidence. */
interface Evidence {
  readonly gap: number
  readonly gap_scale: number
  readonly gap_log_odds: number
  readonly range_log_odds: number
  readonly turnover_log_odds: number
  readonly share_volume_log_odds: number
}

/** A split is reported if its log odds are above this. */
export const SPLIT_LOG_ODDS = 0

/** Added to the limit if the request has no volume, because two kinds of evidence are missing. */
const ODDS_WITHOUT_VOLUME = 2

/** Smaller gaps are ignored, because 6:5 is the smallest ratio in the table. */
const SMALLEST = Math.log(1.17)
/** Gaps of so many steps of the price, with an allowance for rounding, are ordinary moves of prices of a few steps. */
const STEPS = 5.001
/** Share of the gap that must remain between the medians of five bars on either side. */
const PERSISTENCE = 0.55
/** A lasting rise beyond threefold is a reverse split. Real prices can fall that far in one step, but do not rise so far. */
const SAFE_RISE = Math.log(3)
/** If the usual gap is below this share of the usual range, days open where the previous day closed. */
const CONTINUOUS = 0.1
/** Minimum standard deviation of gaps, between bars within trading and over a night. */
const LEAST_GAP = { trading: 0.002, night: 0.004 }
/** Number of splits, and of overnight jumps beyond the smallest gap, per trading day. */
const SPLIT_RATE = 4e-4
const JUMP_RATE = 2.4e-4
/** Real jumps beyond the smallest gap: shares and mean lengths of two exponentials, one for news and one for collapse. */
const JUMPS = [
  [0.97, 0.15],
  [0.03, 0.8],
] as const

/**
 * Finds splits for which the prices were not adjusted, by a likelihood ratio for each gap above 17% between a close and
 * the next open.
 *
 * Under a split, the gap lies near the log of a ratio, with the local scale of gaps (Student's t, 3 degrees of freedom),
 * weighted by how often companies announce that ratio. Under a real jump, it lies in one of two exponential tails or in
 * the Student tail of local gaps (3 degrees of freedom; 10 within trading, where lasting jumps are very rare). Further
 * evidence is the range of the bar, its turnover (unchanged by a split, far higher in a crash) and the lasting change of
 * share volume. A night between shorter bars is judged like a night between daily bars. A split is reported if its log
 * odds are above 0; without volume they must be above 2, because evidence is missing.
 *
 * @param step smallest step of the prices; 0 if there is none. Gaps of a few steps are not considered
 * @example AAPL closes at 645.57 and opens at 92.69 on 2014-06-09: a 7:1 split
 */
export function findSplits(series: Series, interval: number, step: number): Split[] {
  const least = SPLIT_LOG_ODDS + (series.volume ? 0 : ODDS_WITHOUT_VOLUME)
  return candidates(series, interval, step).filter(({ logOdds }) => logOdds > least)
}

/**
 * The most likely ratio for every gap that is large enough and lasts. Gaps after a long break and after a stale run do not
 * count, because prices catch up there.
 */
function candidates(series: Series, interval: number, step: number): Split[] {
  const found: Split[] = []
  let days: Days | null = null
  const staleRunEnds = new Set(staleRuns(series).runs.map(({ start, length }) => start + length))
  for (let at = 1; at < series.count; at += 1) {
    const gap = Math.log(series.open[at]! / series.close[at - 1]!)
    const hole = series.time[at]! - series.time[at - 1]!
    if (Math.abs(gap) < SMALLEST || Math.abs(series.open[at]! - series.close[at - 1]!) <= STEPS * step) continue
    if (hole > longBreak(interval) || staleRunEnds.has(at)) continue
    if (levelChange(series, at) / gap < PERSISTENCE) continue
    // A night between short bars is judged like a night between daily bars.
    const place = isNight(hole, interval)
      ? nightOf((days ??= joinNights(series, interval)), at)
      : placeOf(series, at, interval)
    const measured = measureGap(place, gap)
    const odds = RATIOS.filter(({ factor }) => factor > 1 === gap < 0).map((ratio) => {
      const evidence = evidenceOf(measured, ratio)
      return { at, ratio, logOdds: sumOf(evidence), evidence }
    })
    found.push(odds.reduce((a, b) => (b.logOdds > a.logOdds ? b : a)))
  }
  return found
}

/** Where a gap is and what kind of gap it is. */
interface Place {
  readonly series: Series
  readonly at: number
  /** Length of a bar in days, at most 1. */
  readonly days: number
  /** Trading continues across the gap, so it should not jump like a night. */
  readonly isTrading: boolean
}

/** Trading continues between short bars, and between the days of a market that never closes. */
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

/** Log of the median close of the five bars from `at` on, divided by that of the five bars before. */
export function levelChange({ close }: Series, at: number): number {
  return Math.log(median(close.subarray(at, at + 5)) / median(close.subarray(Math.max(0, at - 5), at)))
}

function sumOf({ gap_log_odds, range_log_odds, turnover_log_odds, share_volume_log_odds }: Evidence): number {
  return gap_log_odds + range_log_odds + turnover_log_odds + share_volume_log_odds
}

/** The measurements at a gap, which do not depend on the ratio. NaN if a value is unknown. */
interface Measurements {
  readonly gap: number
  /** Local scale of gaps. */
  readonly scale: number
  readonly days: number
  readonly isTrading: boolean
  /** Logs of range, turnover and share volume relative to their usual values. */
  readonly range: number
  readonly turnover: number
  readonly shares: number
}

function measureGap({ series, at, days, isTrading }: Place, gap: number): Measurements {
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

function evidenceOf(measurements: Measurements, ratio: Ratio): Evidence {
  const { gap, scale, days, isTrading } = measurements
  const expected = -Math.log(ratio.factor)
  const split = SPLIT_RATE * days * ratio.popularity * student(gap - expected, scale, 3)
  const beyond = Math.abs(gap) - SMALLEST
  const density = JUMPS.reduce((sum, [share, length]) => sum + (share / length) * Math.exp(-beyond / length), 0)
  const tail = JUMP_RATE * days * 0.5 * density
  const rarity = (isTrading ? 100 : 1) * (gap > SAFE_RISE ? 100 : 1)
  const jump = tail / rarity + (gap > SAFE_RISE ? 0 : student(gap, scale, isTrading ? 10 : 3))
  return { gap, gap_scale: scale, gap_log_odds: Math.log(split / jump), ...barEvidence(measurements, expected) }
}

const gapOf = ({ open, close }: Series, i: number): number => Math.abs(Math.log(open[i]! / close[i - 1]!))
const rangeOf = ({ high, low }: Series, i: number): number => Math.log(high[i]! / low[i]!)

/** Median over the thirty bars on either side; NaN if there are none. */
function medianAround(series: Series, at: number, of: (series: Series, i: number) => number): number {
  const values: number[] = []
  for (let i = Math.max(1, at - 30); i <= Math.min(series.count - 1, at + 30); i += 1)
    if (i !== at) values.push(of(series, i))
  return median(values)
}

/** Log likelihood ratios of range, turnover and share volume, fitted on daily US stocks; 0 if unknown. */
function barEvidence({ range, turnover, shares, days }: Measurements, expected: number) {
  // Short bars are weaker evidence.
  const weight = days < 1 ? 0.5 : 1
  return {
    range_log_odds: weight * clip(logLikelihoodRatio(range, [0.15, 0.5], [0.8, 0.55]), 2),
    turnover_log_odds: weight * clip(logLikelihoodRatio(turnover, [0, 0.45], [1.4, 0.65]), 6),
    share_volume_log_odds: weight * clip(logLikelihoodRatio(shares, [-0.85 * expected, 0.5], [0.2, 0.45]), 3),
  }
}

type Shape = readonly [centre: number, scale: number]

/** Log likelihood ratio of a measurement: Student's t with 10 degrees of freedom for both cases; 0 if it is unknown. */
function logLikelihoodRatio(measured: number, split: Shape, jump: Shape): number {
  if (!Number.isFinite(measured)) return 0
  return Math.log(student(measured - split[0], split[1], 10) / student(measured - jump[0], jump[1], 10))
}

function clip(value: number, limit: number): number {
  return Math.max(-limit, Math.min(limit, value))
}

const PEAK = { 3: 2 / (Math.PI * Math.sqrt(3)), 10: 315 / (256 * Math.sqrt(10)) }

/** Density of a scaled Student's t with 3 or 10 degrees of freedom. */
function student(x: number, scale: number, degrees: 3 | 10): number {
  return (PEAK[degrees] * (1 + (x / scale) ** 2 / degrees) ** (-(degrees + 1) / 2)) / scale
}

/** Split ratios and their shares of all announced splits: rough estimates from several years of US listings. */
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
  /** "7:1" means that each old share became seven. */
  readonly name: string
  /** New shares per old share; prices before the split are divided by it. */
  readonly factor: number
  /** Share of all announced splits. */
  readonly popularity: number
}

/** Every ratio that is looked for. */
export const RATIOS: readonly Ratio[] = [...FORWARD, ...REVERSE].map(([a, b, popularity]) => ({
  name: `${a}:${b}`,
  factor: a / b,
  popularity,
}))

/** Whether the time between the opens of two bars shorter than a day contains at least one night. */
const isNight = (hole: number, interval: number): boolean => interval < DAY && hole >= Math.max(NIGHT, 2 * interval)

interface Days {
  /** One bar per stretch of trading between nights. */
  readonly series: Series
  /** Index of the first bar of each day in the original series, ascending. */
  readonly firsts: Float64Array
}

/** Joins the bars between nights into one each, so that nights can be judged like those between daily bars. */
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
