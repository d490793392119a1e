/**
 * Features of the volatility forecast: log volatilities over six spans (HAR on logs, with shorter spans added), a range,
 * the time of day and the weekend.
 *
 * Source: F. Corsi, "A simple approximate long-memory model of realized volatility" (2009).
 */
import { garmanKlass, parkinson } from '../lib/quant/volatility-estimators.ts'
import type { FilteredBar } from '../lib/quant/bad-prints.ts'

/** Lengths of the averages v5 … v10080, in minutes. */
const SPANS = [5, 15, 60, 240, 1440, 10_080] as const
/** v5, v15, v60, v240, v1440, v10080, range15, sin1, cos1, sin2, cos2, weekend, constant. */
export const FEATURES = 13
/** Number of features measured from bars. The rest follow from the time. */
export const MEASURED = 7
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
}

const HORIZON_SUM = MEASURED

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
  }
}

/** Number of bars in each sum: spans, range, horizon. */
function lengths(barMinutes: number): Int32Array {
  const bars = (minutes: number): number => Math.max(1, minutes / barMinutes)
  // Overlapping returns within the hour: the first one ends five minutes into it.
  const horizon = barMinutes === 1 ? HORIZON_MINUTES - RETURN_MINUTES + 1 : bars(HORIZON_MINUTES)
  return Int32Array.from([...SPANS.map(bars), bars(RANGE_MINUTES), horizon])
}

const LENGTHS: ReadonlyMap<number, Int32Array> = new Map([1, 5, 15, 60].map((minutes) => [minutes, lengths(minutes)]))

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
  const { barMinutes, closes, variance, range, sums } = measures
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

/** Writes v5 … v10080 and range15 into `out`, as log volatility per square root of a minute. */
export function writeMeasuredFeatures(measures: Measures, out: Float64Array): void {
  for (let i = 0; i < MEASURED; i += 1) out[i] = logVolatility(measures, i)
}

/** Log volatility of the last hour, from returns within it; NaN in the first hour of a run. */
export function hourlyVolatility(measures: Measures): number {
  return measures.run * measures.barMinutes < HORIZON_MINUTES ? NaN : logVolatility(measures, HORIZON_SUM)
}

const DAY = 1440
/** sin1, cos1, sin2, cos2 of each minute of the day. */
const CLOCK = Float64Array.from({ length: DAY * 4 }, (_, i) => {
  const angle = (2 * Math.PI * Math.floor(i / 4) * (i % 4 < 2 ? 1 : 2)) / DAY
  return i % 2 === 0 ? Math.sin(angle) : Math.cos(angle)
})

/** Writes the features of the time (minutes since 1970, UTC) and the constant after the measured features. */
export function writeTimeFeatures(minute: number, out: Float64Array): void {
  // An integer to the compiler, because remainders of other numbers take long.
  const whole = minute | 0
  const clock = (whole % DAY) * 4
  for (let i = 0; i < 4; i += 1) out[MEASURED + i] = CLOCK[clock + i]!
  // 1970-01-01 was a Thursday: days 2 and 3 of its week are the weekend.
  const weekday = ((whole / DAY) | 0) % 7
  out[MEASURED + 4] = weekday === 2 || weekday === 3 ? 1 : 0
  out[MEASURED + 5] = 1
}
