import { RATIOS, type Ratio } from './ratios.ts'
import { median } from './scale.ts'
import type { Series } from './series.ts'
import { DAY } from './interval.ts'

export interface Split {
  /** Place in the series of the first bar at the new level. */
  readonly at: number
  readonly ratio: Ratio
  /** Log of the odds that it is a split and not a real jump. */
  readonly logOdds: number
}

export const SPLIT_LOG_ODDS = 0

/** Smaller gaps are not looked at: 6:5 is the smallest ratio known. */
const SMALLEST = Math.log(1.17)
/** Share of the gap that the medians of five bars on either side must keep. */
const PERSISTENCE = 0.55
/** A rise above threefold that persists is a reverse split: real prices fall like that, but do not rise so. */
const SAFE_RISE = Math.log(3)
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
 * how often that ratio is announced; under a real jump it lies in one of two exponential tails or in the Student tail of local
 * gaps. The range of the bar, its turnover (unchanged by a split, explosive in a crash) and the lasting change of share
 * volume are added. Reported above log odds of 0. Without volume the odds must be e² to make up for the missing witness.
 *
 * @example a close of 645.57 and an open of 92.69 on AAPL, 2014-06-09: 7:1
 */
export function findSplits(series: Series, interval: number): Split[] {
  const least = SPLIT_LOG_ODDS + (series.volume ? 0 : 2)
  return candidates(series, interval).filter(({ logOdds }) => logOdds > least)
}

/** The likeliest ratio of every gap that is large enough, lasts, and does not follow a hole of more than 15 days. */
export function candidates(series: Series, interval: number): Split[] {
  const found: Split[] = []
  for (let at = 1; at < series.count; at += 1) {
    const gap = Math.log(series.open[at]! / series.close[at - 1]!)
    if (Math.abs(gap) < SMALLEST || series.time[at]! - series.time[at - 1]! > 15 * DAY) continue
    if (levelChange(series, at) / gap < PERSISTENCE) continue
    const odds = RATIOS.map((ratio) => ({ at, ratio, logOdds: logOddsOf(series, at, gap, ratio, interval) }))
    found.push(odds.reduce((a, b) => (b.logOdds > a.logOdds ? b : a)))
  }
  return found
}

/** Log of the median price of five bars from `at` on over that of five before. */
export function levelChange({ close }: Series, at: number): number {
  return Math.log(median(close.subarray(at, at + 5)) / median(close.subarray(Math.max(0, at - 5), at)))
}

function logOddsOf(series: Series, at: number, gap: number, ratio: Ratio, interval: number): number {
  const expected = -Math.log(ratio.factor)
  if (expected * gap <= 0) return -Infinity
  const days = Math.min(1, interval / DAY)
  // Trading that goes on from bar to bar does not jump like a night does, and short bars make poorer witnesses.
  const isContinuous = days < 1 && series.time[at]! - series.time[at - 1]! < 2 * interval
  const scale = gapScale(series, at, isContinuous ? 0.002 : 0.004)
  const split = SPLIT_RATE * days * ratio.popularity * student(gap - expected, scale, 3)
  const beyond = Math.abs(gap) - SMALLEST
  const density = JUMPS.reduce((sum, [share, length]) => sum + (share / length) * Math.exp(-beyond / length), 0)
  const tail = JUMP_RATE * days * 0.5 * density
  const rarity = (isContinuous ? 100 : 1) * (gap > SAFE_RISE ? 100 : 1)
  const jump = tail / rarity + (gap > SAFE_RISE ? 0 : student(gap, scale, 3))
  return Math.log(split / jump) + witnesses(series, at, expected) * (days < 1 ? 0.5 : 1)
}

/** Standard deviation of the gaps around, from their median size; at least 0.4%, or 0.2% within trading. */
function gapScale({ open, close, count }: Series, at: number, least: number): number {
  const sizes: number[] = []
  for (let i = Math.max(1, at - 30); i <= Math.min(count - 1, at + 30); i += 1)
    if (i !== at) sizes.push(Math.abs(Math.log(open[i]! / close[i - 1]!)))
  return Math.max(least, 1.4826 * (median(sizes) || 0))
}

/** Log likelihood ratios of range, turnover and share volume, fitted on daily US stocks; 0 where they cannot be seen. */
function witnesses({ high, low, close, volume, count }: Series, at: number, expected: number): number {
  const window = (of: (i: number) => number, from: number, to: number): number => {
    const values: number[] = []
    for (let i = Math.max(0, from); i < Math.min(count, to); i += 1) if (of(i) > 0) values.push(of(i))
    return values.length < 3 ? NaN : median(values)
  }
  const range = (i: number): number => Math.log(high[i]! / low[i]!)
  const turnover = (i: number): number => close[i]! * (volume?.[i] ?? NaN)
  const shares = (i: number): number => volume?.[i] ?? NaN
  const rangeSeen = Math.log(range(at) / window(range, at - 20, at))
  const turnoverSeen = Math.log(turnover(at) / window(turnover, at - 20, at))
  const sharesSeen = Math.log(window(shares, at + 1, at + 31) / window(shares, at - 30, at))
  return (
    clip(against(rangeSeen, [0.15, 0.5], [0.8, 0.55]), 2) +
    clip(against(turnoverSeen, [0, 0.45], [1.4, 0.65]), 6) +
    clip(against(sharesSeen, [-0.85 * expected, 0.5], [0.2, 0.45]), 3)
  )
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
