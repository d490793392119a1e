import { neighbourMedian } from '../lib/quant/rolling-median.ts'
import { isMultiple } from '../lib/quant/tick-size.ts'
import { DAY } from './bar-times.ts'
import type { AddFinding, Code } from './finding-codes.ts'
import type { Scales, Series } from './clean-series.ts'

export interface PrintThresholds {
  readonly wick: number
  readonly close: number
  /** For a spike at which the next bar opens, so that only the next close reveals it. */
  readonly carried: number
}

/**
 * Thresholds in local scales. The daily ones are fixed and were measured on real misprints. The intraday ones are a floor
 * for the thresholds that are fitted to the file.
 */
const DAILY: PrintThresholds = { wick: 1.5, close: 2, carried: 3.5 }
const DAILY_WITHOUT_VOLUME: PrintThresholds = { wick: 2, close: 2, carried: 3.5 }
const INTRADAY: PrintThresholds = { wick: 2, close: 2, carried: 3 }
/** The threshold is this many times the score that one clean bar is expected to reach. */
const MARGIN = 1.25
const MAX_THRESHOLD = 8
/** Real extremes trade, so the square root of relative volume excuses a price, up to this factor. */
const MAX_EXCUSE = 6
/** Prices that are so many steps apart, with an allowance for rounding, are near. */
const STEPS = 2.001
/** A carried spike must revert to within this share of its smaller leg. */
const REVERSION = 0.4

interface PrintParts {
  readonly scales: Scales
  /** Length of a bar, seconds. */
  readonly interval: number
  /** Tick size of the prices as sent; null if there is none. */
  readonly tick: number | null
  /** Smallest step of the prices as sent; 0 if there is none. */
  readonly step: number
  /** By row of the request, 1 for a bar in extended hours; null if the bars are not judged by parts of the day. */
  readonly extended: Uint8Array | null
  readonly add: AddFinding
}

/**
 * Reports lone wicks and lone closes, and returns the thresholds: of all bars, or of regular and of extended hours, which trade
 * too differently to be judged by each other.
 *
 * A wick is scored by its length beyond the body and beyond the extremes of both neighbours, whichever is smaller. A close
 * is scored by its distance beyond the open of its own bar, the closes around it and the next open. Both are divided by
 * the local scale and by the square root of relative volume. Volume does not excuse a price off the tick size, because
 * such a price was not a trade. A close at which the next bar opens is scored by the smaller of two opposite returns. For
 * bars shorter than a day the thresholds come from the tail of the file itself. Nothing is reported within two steps of the
 * price, because any trade may be a step away.
 *
 * Source: Brownlees and Gallo (2006) for local scales; Barndorff-Nielsen et al. (2009) for neighbours.
 */
export function checkPrints(series: Series, parts: PrintParts): readonly PrintThresholds[] {
  const { scales, interval, tick, step, extended, add } = parts
  const { count, high, low, close } = series
  const excuse = excuseOf(series, scales, tick)
  const ups = new Float64Array(count)
  const downs = new Float64Array(count)
  for (let i = 0; i < count; i += 1) {
    ups[i] = Math.log(high[i]! / ceiling(series, i)) / (scales.local[i]! * excuse(i, high))
    downs[i] = Math.log(floor(series, i) / low[i]!) / (scales.local[i]! * excuse(i, low))
  }
  const lone = closeScores(series, scales, excuse)
  const wicks = ups.map((up, i) => Math.max(up, downs[i]!))
  const partOf = (i: number): 0 | 1 => (extended?.[series.rows[i]!] === 1 ? 1 : 0)
  const judges = (extended ? ([0, 1] as const) : ([0] as const)).map((part) => {
    const own = (scores: Float64Array): Float64Array =>
      extended ? scores.filter((_, i) => partOf(i) === part) : scores
    const tails = { wick: fitTail(own(wicks)), close: fitTail(own(lone.own)), carried: fitTail(own(lone.carried)) }
    return { tails, thresholds: thresholdsOf(series, interval, tails) }
  })
  const report = (i: number, code: Code, score: number, tail: Tail, expected: number): void => {
    const field = code === 'bad_print_high' ? 'high' : code === 'bad_print_low' ? 'low' : 'close'
    const [price, factor] = [series[field][i]!, series.factor[i]!]
    const scale = field === 'close' ? lone.scale[i]! : scales.local[i]!
    const volume_excuse = excuse(i, series[field])
    const reach = score * scale * volume_excuse
    const beyond = price * Math.exp(isAbove(series, i, code) ? -reach : reach) * factor
    const confidence = 1 / (1 + Math.min(1, tail.expected(score)))
    const percent = (100 * Math.abs(price / expected - 1)).toPrecision(3)
    const where = field === 'close' ? 'the closes and opens around it' : 'its body and both neighbours'
    const usual = `${(100 * scale * volume_excuse).toPrecision(3)}%`
    const explanation =
      `${field} is ${percent}% beyond ${where}: ${score.toFixed(1)} times ` +
      (series.volume
        ? `the usual move at this volume (${usual}); the volume is ${scales.activity[i]!.toPrecision(2)} times the usual`
        : `the usual move (${usual})`)
    const severity = confidence >= 0.9 ? 'error' : 'warning'
    const values = { observed: price * factor, expected: expected * factor }
    const inputs = { beyond, scale, volume_excuse }
    add({ code, severity, index: series.rows[i]!, field, ...values, score, confidence, explanation, inputs })
  }
  const isFar = (i: number, distance: number): boolean => distance * series.factor[i]! > STEPS * step
  for (let i = 0; i < count; i += 1) {
    const { tails, thresholds } = judges[partOf(i)]!
    if (ups[i]! > thresholds.wick && isFar(i, high[i]! - ceiling(series, i)))
      report(i, 'bad_print_high', ups[i]!, tails.wick, ceiling(series, i))
    if (downs[i]! > thresholds.wick && isFar(i, floor(series, i) - low[i]!))
      report(i, 'bad_print_low', downs[i]!, tails.wick, floor(series, i))
    const leg = Math.min(Math.abs(close[i]! - (close[i - 1] ?? NaN)), Math.abs(close[i]! - (close[i + 1] ?? NaN)))
    if (!isFar(i, leg)) continue
    const between = Math.sqrt((series.close[i - 1] ?? NaN) * (series.close[i + 1] ?? NaN))
    if (lone.own[i]! > thresholds.close)
      report(i, 'bad_print_close', lone.own[i]!, tails.close, interval < DAY ? series.open[i + 1]! : between)
    else if (lone.carried[i]! > thresholds.carried)
      report(i, 'bad_print_close', lone.carried[i]!, tails.carried, between)
  }
  return judges.map(({ thresholds }) => thresholds)
}

function thresholdsOf(
  { count, volume }: Series,
  interval: number,
  tails: Readonly<Record<keyof PrintThresholds, Tail>>,
): PrintThresholds {
  if (interval >= DAY) return volume ? DAILY : DAILY_WITHOUT_VOLUME
  const own = (lowest: number, tail: Tail, margin: number): number =>
    Math.min(MAX_THRESHOLD, Math.max(count < 200 ? lowest + 1 : lowest, margin * tail.one))
  return {
    wick: own(INTRADAY.wick, tails.wick, MARGIN),
    close: own(INTRADAY.close, tails.close, MARGIN),
    carried: own(INTRADAY.carried, tails.carried, 2 * MARGIN),
  }
}

/** Whether a bad print is too high. */
function isAbove({ close }: Series, i: number, code: Code): boolean {
  return code === 'bad_print_high' || (code === 'bad_print_close' && close[i]! > close[i - 1]!)
}

type Excuse = (i: number, prices: Float64Array) => number

function excuseOf({ factor }: Series, { activity }: Scales, tick: number | null): Excuse {
  return (i, prices) => {
    const isOff = tick !== null && !isMultiple(prices[i]! * factor[i]!, tick)
    return isOff ? 1 : Math.min(MAX_EXCUSE, Math.sqrt(Math.max(1, activity[i]!)))
  }
}

/** The highest price that the body and the neighbours confirm. */
function ceiling({ open, close, high }: Series, i: number): number {
  return Math.max(open[i]!, close[i]!, high[i - 1] ?? 0, high[i + 1] ?? 0)
}

/** The lowest price that the body and the neighbours confirm. */
function floor({ open, close, low }: Series, i: number): number {
  return Math.min(open[i]!, close[i]!, low[i - 1] ?? Infinity, low[i + 1] ?? Infinity)
}

interface CloseScores {
  /** How far the close lies beyond everything around it, including the next open. */
  readonly own: Float64Array
  /** For a close between opposite returns of similar size: the size of the smaller one. */
  readonly carried: Float64Array
  /** The scale of both, before volume is taken into account. */
  readonly scale: Float64Array
}

/** The first and the last bar score 0, because they lack a neighbour. */
function closeScores({ count, open, close }: Series, scales: Scales, excuse: Excuse): CloseScores {
  const returns = close.map((value, i) => Math.log(value / (close[i - 1] ?? value)))
  const usual = neighbourMedian(returns.map(Math.abs), 5)
  const own = new Float64Array(count)
  const carried = new Float64Array(count)
  const scale = scales.local.map((local, i) => Math.max(local, 1.5 * (usual[i] || 0)))
  for (let i = 1; i < count - 1; i += 1) {
    const unit = scale[i]! * excuse(i, close)
    const around = [close[i - 1]!, close[i + 1]!, open[i + 1]!, open[i]!]
    const above = Math.log(close[i]! / Math.max(...around))
    const below = Math.log(Math.min(...around) / close[i]!)
    own[i] = Math.max(above, below, 0) / unit
    const [before, after] = [returns[i]!, returns[i + 1]!]
    const leg = Math.min(Math.abs(before), Math.abs(after))
    if (before * after < 0 && Math.abs(before + after) < REVERSION * leg) carried[i] = leg / unit
  }
  return { own, carried, scale }
}

/** The upper tail of a score over a whole file: an exponential fitted between its 90% and 98% quantiles. */
interface Tail {
  /** Expected number of bars that score at least this much in a clean file of this length. */
  expected(score: number): number
  /** The score that one bar of a clean file is expected to reach. */
  readonly one: number
}

/** Fewer bars than this are not enough to fit a tail. */
const MIN_TAIL_BARS = 500
/** 90% and 98% quantiles of the scores of clean files, for files that are too short. */
const TYPICAL = [0.28, 0.6] as const

/**
 * Fits the tail to the file itself. Defects rarer than 2% do not reach the quantiles, so the fit describes the market and
 * not its misprints.
 */
export function fitTail(scores: Float64Array): Tail {
  const sorted = scores.slice().sort()
  const at = (p: number): number => Math.max(0, sorted[Math.floor(p * sorted.length)] ?? 0)
  const [low, high] = scores.length < MIN_TAIL_BARS ? TYPICAL : [at(0.9), at(0.98)]
  const slope = Math.max((high - low) / Math.log(5), 1e-9)
  const above = Math.max(1, 0.02 * scores.length)
  return {
    expected: (score) => above * Math.exp((high - score) / slope),
    one: high + slope * Math.log(above),
  }
}

const FACTORS = [0.01, 0.1, 10, 100]
const REACH = 3

/**
 * Reports whole bars that are displaced by a factor of 10 or 100: all four prices lie near the prices around them times
 * that factor, and the prices around agree with each other. Returns 1 for each displaced place and 0 for the others.
 */
export function checkDecimals(series: Series, add: AddFinding): Uint8Array {
  const displaced = new Uint8Array(series.count)
  for (let i = 0; i < series.count; i += 1) {
    const level = levelAround(series, i, displaced)
    if (level === null) continue
    const factor = FACTORS.find((candidate) => within(series, i, level * candidate))
    if (factor === undefined) continue
    displaced[i] = 1
    const observed = series.close[i]! * series.factor[i]!
    const explanation = `all four prices are ${factor} times the prices around`
    add({
      code: 'decimal_shift',
      severity: 'error',
      index: series.rows[i]!,
      field: 'bar',
      observed,
      expected: observed / factor,
      score: null,
      confidence: 1,
      explanation,
    })
  }
  return displaced
}

/** Median close of up to three bars on each side; null if the two sides differ by more than a quarter. */
function levelAround({ close, count }: Series, i: number, displaced: Uint8Array): number | null {
  const side = (step: number): number => {
    const values: number[] = []
    for (let j = i + step; j >= 0 && j < count && values.length < REACH; j += step)
      if (displaced[j] === 0) values.push(close[j]!)
    return values.length === 0 ? NaN : values.sort((a, b) => a - b)[values.length >> 1]!
  }
  const [before, after] = [side(-1), side(1)]
  if (Number.isNaN(before)) return after
  if (Number.isNaN(after)) return before
  return Math.abs(Math.log(before / after)) < 0.25 ? Math.sqrt(before * after) : null
}

function within({ open, high, low, close }: Series, i: number, level: number): boolean {
  return [open, high, low, close].every((price) => Math.abs(Math.log(price[i]! / level)) < 0.35)
}
