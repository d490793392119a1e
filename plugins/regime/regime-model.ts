/**
 * The regime model is a state machine: it reads bars and emits one step for each. The state is plain data, so a run can
 * be stored, restored and continued with identical results. Nothing depends on later bars.
 *
 * Bars → bad-print filter → features → forecast of the next hour's volatility → probability that it exceeds the
 * boundary → smoothing → STABLE or VOLATILE by a Schmitt trigger. Confidence follows from the probability before smoothing,
 * calibrated.
 */
import { createPrintFilter, filterPrint, type FilteredBar, type PrintFilter } from '../lib/quant/bad-prints.ts'
import { empiricalCdf } from '../lib/quant/descriptive-statistics.ts'
import { createSortedWindow, pushSorted, windowQuantile, type SortedWindow } from '../lib/quant/sorted-window.ts'
import { calibrate, type Calibration, createCalibration, judgeLabel, noteLabel } from './label-confidence.ts'
import {
  barsSupported,
  createMeasures,
  FEATURES,
  HORIZON_MINUTES,
  hourlyVolatility,
  measure,
  recomputeSums,
  V60,
  writeMeasuredFeatures,
  writeTimeFeatures,
  type Measures,
} from './volatility-features.ts'
import {
  closeRow,
  createRows,
  fitRows,
  openRow,
  POOLED,
  predict,
  quantileOf,
  type Fit,
  type Rows,
} from './volatility-fit.ts'

/** The names of the model by version. Published with every snapshot; a change of the numbers needs a new one. */
export const MODELS = ['har-schmitt/1', 'har-schmitt/2'] as const
export const MODEL = MODELS[1]

const DAY = 1440
const WEEK = 7 * DAY
/** Days of history behind the fit, the boundary and the reference volatility. */
const TRAILING_DAYS = 180
/** Every 7th minute is a training row. */
const STRIDE = 7
/** Days of training rows until which the model is fitted every day, and after which every week. */
const YOUNG_DAYS = 30
const BOUNDARY_QUANTILE = 0.65
/** Half-life of the smoothing, in minutes. */
const HALF_LIFE = 36
/** How much a step counts in the smoothing, by the minutes of its bar. A power takes longer than all else of a step. */
const WEIGHTS = Float64Array.from({ length: 61 }, (_, minutes) => 1 - 2 ** (-minutes / HALF_LIFE))
/** The label changes to VOLATILE above this probability, and to STABLE below the next. */
const RISE = 0.6
const FALL = 0.4
const LEAST_SCALAR = 0.25
const GREATEST_SCALAR = 1.5
/**
 * Up to this many missing minutes count as quiet for the steps after them. A longer hole freezes the state and measures
 * nothing. Only its end tells which of them a hole is, so the minutes of either repeat the step before.
 */
const LONGEST_QUIET = 30
/** A bar that moves by more than this many forecast standard deviations never lowers the forecast. */
const SURPRISE = 1.5

export interface ModelState {
  readonly model: typeof MODEL
  readonly barMinutes: number
  /** Close of the last bar, in minutes since 1970. */
  minute: number
  /** Close of the last bar as it came, before the filter; NaN before the first. */
  price: number
  readonly filter: PrintFilter
  readonly measures: Measures
  readonly rows: Rows
  fit: Fit
  /** False if the model keeps the fit that it was created with. */
  readonly refits: boolean
  readonly calibration: Calibration
  /** Hourly v60 of the trailing 180 days. */
  readonly hours: SortedWindow
  boundary: number
  /** Median of the hourly volatility. At this volatility the position scalar is 1. */
  reference: number
  /** Smoothed probability; NaN before the first step. */
  probability: number
  volatile: boolean
  /** Probability that the label is right, before calibration. */
  stated: number
  /** Minute of the last change of the emitted label. */
  since: number
  /** True if the last bar, held back or larger than expected, must not lower the forecast or raise the scalar. */
  cautious: boolean
  /** The last step. Every emission reuses this object. */
  readonly step: Step
}

/** One snapshot, in the model's units: log volatility per square root of a minute. */
export interface Step {
  /** Close of the bar, in minutes since 1970. */
  minute: number
  volatile: boolean
  /** Smoothed probability that the next hour is more volatile than the boundary. */
  probability: number
  /** Probability that the next hour confirms the label. */
  confidence: number
  /** Expected log volatility. */
  forecast: number
  /** Logarithms of the square root of the mean variance, and of the median, first and ninth decile of volatility. */
  mean: number
  median: number
  p10: number
  p90: number
  boundary: number
  /** Median of the hourly volatility. */
  reference: number
  /** Realized volatility of the last hour; NaN if the hour was interrupted. */
  realized: number
  scalar: number
  since: number
  bars: number
  /** True within a hole in the data, where the step before is repeated. */
  held: boolean
}

/**
 * Creates a model for bars of 1, 5, 15 or 60 minutes; throws RangeError for other lengths. With a given fit it forecasts
 * by that alone. Without one it starts from pooled coefficients and fits itself, every day at first and then every week.
 */
export function createModel(barMinutes: number, fit?: Fit): ModelState {
  if (!barsSupported(barMinutes)) throw new RangeError(`bars of ${barMinutes} minutes are not supported`)
  return {
    model: MODEL,
    barMinutes,
    minute: NaN,
    price: NaN,
    filter: createPrintFilter(),
    measures: createMeasures(barMinutes),
    rows: createRows(Math.floor(TRAILING_DAYS * rowsADay(barMinutes))),
    fit: fit ?? POOLED,
    refits: fit === undefined,
    calibration: createCalibration(),
    hours: createSortedWindow(TRAILING_DAYS * 24),
    boundary: NaN,
    reference: NaN,
    probability: NaN,
    volatile: false,
    stated: NaN,
    since: NaN,
    cautious: false,
    step: {
      minute: NaN,
      volatile: false,
      probability: NaN,
      confidence: NaN,
      forecast: NaN,
      mean: NaN,
      median: NaN,
      p10: NaN,
      p90: NaN,
      boundary: NaN,
      reference: NaN,
      realized: NaN,
      scalar: NaN,
      since: NaN,
      bars: 0,
      held: false,
    },
  }
}

/** The close of the last bar, epoch seconds; NaN before the first. */
export function closedAt({ minute }: ModelState): number {
  return minute * 60
}

const bar: FilteredBar = { open: 0, high: 0, low: 0, close: 0, verdict: 'good' }
const features = new Float64Array(FEATURES)
const cells = new Int32Array(2)

/**
 * Adds the bar that opened at `opened` (minutes since 1970). Emits one step for every missing bar before it and one for
 * the bar itself. Emits nothing in the first day. Ignores a bar that is not newer than the last.
 */
export function advance(
  state: ModelState,
  opened: number,
  open: number,
  high: number,
  low: number,
  close: number,
  emit: (step: Step) => void,
): void {
  const { barMinutes } = state
  if (opened < state.minute) return
  const missing = Math.round((opened - state.minute) / barMinutes) || 0
  if (missing * barMinutes > LONGEST_QUIET) {
    state.measures.run = 0
    for (let i = 0; i < missing; i += 1) {
      state.minute += barMinutes
      hold(state, emit)
    }
    state.filter.close = NaN
  } else {
    const last = state.filter.close
    for (let i = 0; i < missing; i += 1) {
      take(state, last, last, last, last, 0)
      hold(state, emit)
    }
  }
  if (Number.isNaN(state.minute)) state.minute = opened
  const move = Math.abs(Math.log(close / state.price))
  state.price = close
  const forecast = take(state, open, high, low, close, move)
  if (Number.isNaN(forecast)) return
  writeStep(state, forecast)
  emit(state.step)
}

/** Emits the last step again for a minute of a hole. */
function hold({ minute, step }: ModelState, emit: (step: Step) => void): void {
  if (Number.isNaN(step.probability)) return
  step.held = true
  step.minute = minute
  step.realized = NaN
  emit(step)
}

/**
 * Advances by one bar and returns the forecast of the next hour's volatility; NaN before the first.
 *
 * @param move size of the log return of the bar as it came
 */
function take(state: ModelState, open: number, high: number, low: number, close: number, move: number): number {
  const { measures, rows, barMinutes } = state
  const previous = state.filter.close
  filterPrint(state.filter, bar, open, high, low, close)
  measure(measures, bar, previous)
  state.minute += barMinutes
  // An integer to the compiler, because remainders of other numbers take long.
  const minute = state.minute | 0
  if (minute % DAY === 0) recomputeSums(measures)
  writeMeasuredFeatures(measures, features)
  writeTimeFeatures(minute, features, cells)
  const realized = hourlyVolatility(measures)

  if (!Number.isNaN(realized) && isRow(minute - HORIZON_MINUTES, barMinutes)) {
    const within = Math.ceil(HORIZON_MINUTES / Math.max(STRIDE, barMinutes)) + 1
    closeRow(rows, minute - HORIZON_MINUTES, realized, within)
    judgeLabel(state.calibration, minute - HORIZON_MINUTES, realized, rowsADay(barMinutes))
  }
  if (measures.count * barMinutes < DAY) return NaN
  if (isRow(minute, barMinutes)) openRow(rows, minute, features)
  if (minute % 60 === 0) startHour(state)
  if (minute % DAY === 0 && state.refits) refit(state)
  // A bar that is held back counts as flat, and one that returns from it as small.
  const expected = Math.exp(state.step.forecast) * Math.sqrt(barMinutes)
  state.cautious = bar.verdict === 'held' || move > SURPRISE * expected
  return Number.isNaN(state.boundary) ? NaN : judge(state)
}

const rowsADay = (barMinutes: number): number => DAY / Math.max(STRIDE, barMinutes)

function isRow(minute: number, barMinutes: number): boolean {
  return barMinutes >= STRIDE || minute % (STRIDE * barMinutes) === 0
}

/** Updates the boundary from the hours before, then adds the hour that just ended. */
function startHour(state: ModelState): void {
  if (state.hours.size > 0) {
    state.boundary = windowQuantile(state.hours, BOUNDARY_QUANTILE)
    state.reference = windowQuantile(state.hours, 0.5)
  }
  pushSorted(state.hours, features[V60]!)
}

/** Fits the model at the end of a day: of every day while there are few rows, and later of every week. */
function refit(state: ModelState): void {
  const daily = rowsADay(state.barMinutes)
  if (state.minute % WEEK !== 0 && state.rows.count >= YOUNG_DAYS * daily) return
  state.fit = fitRows(state.rows, daily, POOLED) ?? state.fit
}

/**
 * True if the step of a model for one-minute bars rests on a fit of its own: on one of rows of 30 days, by a last week
 * that began with them.
 * The bars before `minute` are taken to follow each other; a hole among them can make it false for one week too long.
 *
 * @param minute close of the bar, in minutes since 1970
 * @param bars bars so far, that one included
 */
export function hasOwnFit(minute: number, bars: number): boolean {
  const firstRow = Math.ceil((minute - bars + DAY) / STRIDE)
  // A row counts once its outcome is known.
  const lastRow = Math.floor((Math.floor(minute / WEEK) * WEEK - HORIZON_MINUTES) / STRIDE)
  return lastRow - firstRow + 1 >= (YOUNG_DAYS * DAY) / STRIDE
}

/** Smooths the probability and turns it into a label. Returns the forecast that it follows from. */
function judge(state: ModelState): number {
  const predicted = predict(state.fit, features, cells)
  const forecast = state.cautious && predicted < state.step.forecast ? state.step.forecast : predicted
  const chance = 1 - empiricalCdf(state.fit.residuals, state.boundary - forecast)
  const weight = WEIGHTS[state.barMinutes]!
  state.probability = Number.isNaN(state.probability)
    ? chance
    : state.probability + weight * (chance - state.probability)
  state.volatile = state.volatile ? state.probability >= FALL : state.probability > RISE
  state.stated = state.volatile ? chance : 1 - chance
  if (isRow(state.minute, state.barMinutes))
    noteLabel(state.calibration, state.volatile, state.minute, state.stated, state.boundary)
  return forecast
}

function writeStep(state: ModelState, forecast: number): void {
  const { step, fit } = state
  // Compared with the label that was emitted last: one that changed within a hole is emitted only now.
  if (Number.isNaN(step.probability) || state.volatile !== step.volatile) state.since = state.minute
  step.minute = state.minute
  step.volatile = state.volatile
  step.probability = state.probability
  step.confidence = calibrate(state.calibration, state.volatile, state.minute, state.stated, rowsADay(state.barMinutes))
  step.forecast = forecast
  step.mean = forecast + 0.5 * Math.log(fit.meanSquare)
  step.median = forecast + quantileOf(fit, 0.5)
  step.p10 = forecast + quantileOf(fit, 0.1)
  step.p90 = forecast + quantileOf(fit, 0.9)
  step.boundary = state.boundary
  step.reference = state.reference
  step.realized = hourlyVolatility(state.measures)
  const scalar = Math.min(GREATEST_SCALAR, Math.max(LEAST_SCALAR, Math.exp(state.reference - forecast)))
  step.scalar = state.cautious && step.scalar < scalar ? step.scalar : scalar
  step.since = state.since
  step.bars = Math.min(state.measures.count, (TRAILING_DAYS * DAY) / state.barMinutes)
  step.held = false
}
