/**
 * Features of the volatility forecast: log volatilities over six spans (HAR on logs, with shorter spans added), a range,
 * three exponentially weighted volatilities, and the season: the hour of the day, the weekday and the opening of New York.
 *
 * Source: F. Corsi, "A simple approximate long-memory model of realized volatility" (2009).
 */
import { garmanKlass, parkinson } from '../lib/quant/volatility-estimators.ts'
import type { FilteredBar } from '../lib/quant/bad-prints.ts'
import { createZone } from '../lib/time/time-zones.ts'

/** Lengths of the averages v5 … v10080, in minutes. */
const SPANS = [5, 15, 60, 240, 1440, 10_080] as const
/** Half-lives of the averages e4, e11 and e24, in hours. */
const HALF_LIVES = [4, 11, 24] as const
/** v5, v15, v60, v240, v1440, v10080, range15, e4, e11, e24, New York before and after its opening, constant. */
export const FEATURES = 13
/** Number of features measured from bars. The rest follow from the time. */
export const MEASURED = 10
/** Cells of the season: 24 hours of a working day, 24 of a weekend, 7 weekdays. A minute is in two of them. */
export const CELLS = 55
/** Index of v60 among the features. */
export const V60 = 2
const RANGE_MINUTES = 15
const LONGEST = 10_080
/** Length of the returns behind the variance proxy of minute bars, in minutes. */
const RETURN_MINUTES = 5
/** The model forecasts the volatility of this many minutes. */
export const HORIZON_MINUTES = 60 as const
/** Added to a variance before its logarithm, so that a flat market has one. */
const EPSILON = 1e-12

export interface Measures {
  readonly barMinutes: number
  /** Bars since the series began or was interrupted. */
  run: number
  /** Bars since the series began. */
  count: number
  /** Logarithms of the last closes, for the 5-minute return. */
  readonly closes: Float64Array
  /** Variance per minute, and Parkinson variance, of the last 10,080 minutes, by `count` modulo the length. */
  readonly variance: Float64Array
  readonly range: Float64Array
  /** Sums of the variance over each span, of the range, and of the variance over the horizon. */
  readonly sums: Float64Array
  /** Exponentially weighted variances, by half-life. */
  readonly averages: Float64Array
}

const HORIZON_SUM = SPANS.length + 1

/** Creates empty measures for bars of `barMinutes`, a divisor of 60. */
export function createMeasures(barMinutes: number): Measures {
  const length = LONGEST / barMinutes
  return {
    barMinutes,
    run: 0,
    count: 0,
    closes: new Float64Array(RETURN_MINUTES),
    variance: new Float64Array(length),
    range: new Float64Array(length),
    sums: new Float64Array(HORIZON_SUM + 1),
    averages: new Float64Array(HALF_LIVES.length),
  }
}

/** Number of bars in each sum: spans, range, horizon. */
function lengths(barMinutes: number): Int32Array {
  const bars = (minutes: number): number => Math.max(1, minutes / barMinutes)
  // Overlapping returns within the hour: the first one ends five minutes into it.
  const horizon = barMinutes === 1 ? HORIZON_MINUTES - RETURN_MINUTES + 1 : bars(HORIZON_MINUTES)
  return Int32Array.from([...SPANS.map(bars), bars(RANGE_MINUTES), horizon])
}

const BAR_MINUTES = [1, 5, 15, 60] as const
const LENGTHS: ReadonlyMap<number, Int32Array> = new Map(BAR_MINUTES.map((minutes) => [minutes, lengths(minutes)]))
/** How much a new bar counts in each average, by the minutes of the bar. */
const WEIGHTS: ReadonlyMap<number, Float64Array> = new Map(
  BAR_MINUTES.map((minutes) => [minutes, Float64Array.from(HALF_LIVES, (hours) => 1 - 2 ** (-minutes / 60 / hours))]),
)

/** Returns true for supported bar lengths: 1, 5, 15 and 60 minutes. */
export function barsSupported(barMinutes: number): boolean {
  return LENGTHS.has(barMinutes)
}

/**
 * The squared return of a minute bar over five minutes, divided by five. After an interruption it is that of the minutes since
 * then, and in the first of them the last one before: zeros would make the market look calmer than it has ever been.
 */
function minuteVariance({ run, count, closes, variance }: Measures, log: number): number {
  const isBeginning = run === count && run < RETURN_MINUTES
  if (isBeginning) return 0
  if (run === 0) return variance[(count - 1) % variance.length]!
  const minutes = Math.min(run, RETURN_MINUTES)
  return (log - closes[(count - minutes) % RETURN_MINUTES]!) ** 2 / minutes
}

/**
 * Adds one filtered bar. `previous` is the last close before it. The variance proxy of a minute bar is that of
 * `minuteVariance`. For a longer bar it is the Garman-Klass variance plus the squared gap, divided by the minutes of the bar.
 */
export function measure(measures: Measures, bar: FilteredBar, previous: number): void {
  const { barMinutes, closes, variance, range, sums, averages } = measures
  let proxy: number
  if (barMinutes === 1) {
    const log = Math.log(bar.close)
    proxy = minuteVariance(measures, log)
    closes[measures.count % RETURN_MINUTES] = log
  } else {
    const gap = measures.run > 0 ? Math.log(bar.open / previous) : 0
    proxy = (Math.max(0, garmanKlass(bar.open, bar.high, bar.low, bar.close)) + gap * gap) / barMinutes
  }
  const extent = parkinson(bar.high, bar.low) / barMinutes
  const size = variance.length
  const counts = LENGTHS.get(barMinutes)!
  for (let i = 0; i < sums.length; i += 1) {
    const source = i === SPANS.length ? range : variance
    const leaving = measures.count - counts[i]!
    sums[i]! += (i === SPANS.length ? extent : proxy) - (leaving >= 0 ? source[leaving % size]! : 0)
  }
  const weights = WEIGHTS.get(barMinutes)!
  // The first bars count alike.
  for (let i = 0; i < averages.length; i += 1)
    averages[i]! += Math.max(weights[i]!, 1 / (measures.count + 1)) * (proxy - averages[i]!)
  variance[measures.count % size] = proxy
  range[measures.count % size] = extent
  measures.count += 1
  measures.run += 1
}

/**
 * Recomputes the sums from the values. Running sums drift by rounding; doing this once a day keeps the drift below
 * 1e-12 of a typical variance.
 */
export function recomputeSums(measures: Measures): void {
  const { variance, range, sums, count } = measures
  const counts = LENGTHS.get(measures.barMinutes)!
  for (let i = 0; i < sums.length; i += 1) {
    const source = i === SPANS.length ? range : variance
    let sum = 0
    for (let k = Math.max(0, count - counts[i]!); k < count; k += 1) sum += source[k % source.length]!
    sums[i] = sum
  }
}

/** Log volatility: half the logarithm of the mean variance per minute. */
function logVolatility(measures: Measures, index: number): number {
  const length = Math.min(LENGTHS.get(measures.barMinutes)![index]!, measures.count)
  return 0.5 * Math.log(Math.max(0, measures.sums[index]!) / length + EPSILON)
}

/** Writes v5 … v10080, range15 and e4 … e24 into `out`, as log volatility per square root of a minute. */
export function writeMeasuredFeatures(measures: Measures, out: Float64Array): void {
  const { averages } = measures
  for (let i = 0; i < HORIZON_SUM; i += 1) out[i] = logVolatility(measures, i)
  for (let i = 0; i < averages.length; i += 1) out[HORIZON_SUM + i] = 0.5 * Math.log(averages[i]! + EPSILON)
}

/** Log volatility of the last hour, from returns within it; NaN in the first hour of a run. */
export function hourlyVolatility(measures: Measures): number {
  return measures.run * measures.barMinutes < HORIZON_MINUTES ? NaN : logVolatility(measures, HORIZON_SUM)
}

const DAY = 1440
const newYork = createZone('America/New_York')!
/** Minute of the day at which the stock exchange of New York opens. */
const OPENING = 570
/** Minutes from UTC to New York, and the hour since 1970 of which they are known. */
const lag = { hour: NaN, minutes: 0 }

/**
 * Writes the features of the time (minutes since 1970, UTC) and the constant after the measured features, and the two cells
 * of the season into `cells`. Those of New York are the shares of the next hour that lie in the hour and a half before the
 * opening, and in the hour after it.
 */
export function writeTimeFeatures(minute: number, out: Float64Array, cells: Int32Array): void {
  // An integer to the compiler, because remainders of other numbers take long.
  const whole = minute | 0
  // 1970-01-01 was a Thursday: days 2 and 3 of its week are the weekend.
  const weekday = ((whole / DAY) | 0) % 7
  cells[0] = (((whole % DAY) / 60) | 0) + (weekday === 2 || weekday === 3 ? 24 : 0)
  cells[1] = 48 + weekday
  const hour = (whole / 60) | 0
  if (lag.hour !== hour) {
    lag.hour = hour
    lag.minutes = newYork(hour * 3600) / 60
  }
  const local = (whole + lag.minutes) | 0
  const localDay = ((local / DAY) | 0) % 7
  // Minutes until the opening, on a working day.
  const until = localDay === 2 || localDay === 3 ? -DAY : OPENING - (local % DAY)
  out[MEASURED] = Math.max(0, Math.min(60, until) - Math.max(0, until - 90)) / 60
  out[MEASURED + 1] = Math.max(0, 60 - Math.abs(until)) / 60
  out[FEATURES - 1] = 1
}
