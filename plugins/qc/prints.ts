import { isMultiple } from '../lib/quant/multiple.ts'
import { fitTail, type Tail } from './tail.ts'
import type { Add, Code } from './finding.ts'
import { DAY } from './interval.ts'
import { neighbourMedian } from './scale.ts'
import type { Scales, Series } from './series.ts'

export interface PrintThresholds {
  readonly wick: number
  readonly close: number
  /** For a spike that the next bar opens at, where only the next close shows it. */
  readonly carried: number
}

/** Lowest thresholds, in local scales: daily bars as measured on real misprints, shorter bars the floor of their own tail. */
const DAILY: PrintThresholds = { wick: 1.5, close: 2, carried: 3.5 }
const DAILY_WITHOUT_VOLUME: PrintThresholds = { wick: 2, close: 2, carried: 3.5 }
const INTRADAY: PrintThresholds = { wick: 2, close: 2, carried: 3 }
/** How far above the score one clean bar is expected to reach. */
const MARGIN = 1.25
const HIGHEST = 8
/** Volume excuses an extreme by its square root, at most this much: real extremes trade. */
const MOST_EXCUSED = 6
/** A carried spike must come back to within this share of the smaller leg. */
const REVERSION = 0.4

interface PrintParts {
  readonly scales: Scales
  /** Seconds of a bar. */
  readonly interval: number
  /** The grid of the prices as sent; null where there is none. */
  readonly tick: number | null
  readonly add: Add
}

/**
 * Lone wicks and lone closes. A wick is scored by the smaller of its length beyond the body and beyond the extreme of both
 * neighbours, a close by its distance beyond the open of its own bar, the closes around it and the next open; both over
 * the local scale and the square root of relative volume, which is no excuse for a price off the grid: it was no trade. A
 * close that the next bar opens at is scored by the smaller of two opposite returns. On bars shorter than a day
 * thresholds come from the file's own tail. Answers the thresholds.
 *
 * Source: quant note 4.1; Brownlees and Gallo (2006) for local scales; Barndorff-Nielsen et al. (2009) for neighbours.
 */
export function checkPrints(series: Series, { scales, interval, tick, add }: PrintParts): PrintThresholds {
  const { count, high, low } = series
  const excuse = excuseOf(series, scales, tick)
  const ups = new Float64Array(count)
  const downs = new Float64Array(count)
  for (let i = 0; i < count; i += 1) {
    ups[i] = Math.log(high[i]! / ceiling(series, i)) / (scales.local[i]! * excuse(i, high))
    downs[i] = Math.log(floor(series, i) / low[i]!) / (scales.local[i]! * excuse(i, low))
  }
  const lone = closeScores(series, scales, excuse)
  const tails = {
    wick: fitTail(ups.map((up, i) => Math.max(up, downs[i]!))),
    close: fitTail(lone.own),
    carried: fitTail(lone.carried),
  }
  const thresholds = thresholdsOf(series, interval, tails)
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
    const explanation =
      `${field} ${percent}% beyond ${where}, ${score.toFixed(1)} local scales of ${(100 * scale).toPrecision(3)}%, ` +
      `on ${scales.activity[i]!.toPrecision(2)} times the usual volume`
    const severity = confidence >= 0.9 ? 'error' : 'warning'
    const values = { observed: price * factor, expected: expected * factor }
    const inputs = { beyond, scale, volume_excuse }
    add({ code, severity, index: series.rows[i]!, field, ...values, score, confidence, explanation, inputs })
  }
  for (let i = 0; i < count; i += 1) {
    if (ups[i]! > thresholds.wick) report(i, 'bad_print_high', ups[i]!, tails.wick, ceiling(series, i))
    if (downs[i]! > thresholds.wick) report(i, 'bad_print_low', downs[i]!, tails.wick, floor(series, i))
    const between = Math.sqrt((series.close[i - 1] ?? NaN) * (series.close[i + 1] ?? NaN))
    if (lone.own[i]! > thresholds.close)
      report(i, 'bad_print_close', lone.own[i]!, tails.close, interval < DAY ? series.open[i + 1]! : between)
    else if (lone.carried[i]! > thresholds.carried)
      report(i, 'bad_print_close', lone.carried[i]!, tails.carried, between)
  }
  return thresholds
}

function thresholdsOf(
  { count, volume }: Series,
  interval: number,
  tails: Readonly<Record<keyof PrintThresholds, Tail>>,
): PrintThresholds {
  if (interval >= DAY) return volume ? DAILY : DAILY_WITHOUT_VOLUME
  const own = (lowest: number, tail: Tail, margin: number): number =>
    Math.min(HIGHEST, Math.max(count < 200 ? lowest + 1 : lowest, margin * tail.one))
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
    return isOff ? 1 : Math.min(MOST_EXCUSED, Math.sqrt(Math.max(1, activity[i]!)))
  }
}

/** The highest price that body and neighbours vouch for. */
function ceiling({ open, close, high }: Series, i: number): number {
  return Math.max(open[i]!, close[i]!, high[i - 1] ?? 0, high[i + 1] ?? 0)
}

/** The lowest price that body and neighbours vouch for. */
function floor({ open, close, low }: Series, i: number): number {
  return Math.min(open[i]!, close[i]!, low[i - 1] ?? Infinity, low[i + 1] ?? Infinity)
}

interface CloseScores {
  /** The close beyond everything around it, the next open included. */
  readonly own: Float64Array
  /** The close reached and left by opposite returns of like size. */
  readonly carried: Float64Array
  /** What both are measured in, before volume. */
  readonly scale: Float64Array
}

/** The first and last bar have no witness on one side: 0. */
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
    const [came, left] = [returns[i]!, returns[i + 1]!]
    const leg = Math.min(Math.abs(came), Math.abs(left))
    if (came * left < 0 && Math.abs(came + left) < REVERSION * leg) carried[i] = leg / unit
  }
  return { own, carried, scale }
}
