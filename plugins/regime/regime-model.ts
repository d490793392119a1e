/**
 * The regime model as one state machine: bars in, one snapshot for every bar out. The state is plain data, so a run can
 * be kept, restored and continued to the byte; nothing in it depends on bars after the last one taken in.
 *
 * Bars → bad-print filter → features → forecast of the next hour's volatility → chance that it exceeds the boundary →
 * smoothed → STABLE or VOLATILE by a Schmitt trigger.
 */
import { createPrintFilter, filterPrint, type FilteredBar, type PrintFilter } from '../lib/quant/bad-prints.ts'
import { empiricalCdf } from '../lib/quant/descriptive-statistics.ts'
import { createSortedWindow, pushSorted, windowQuantile, type SortedWindow } from '../lib/quant/sorted-window.ts'
import {
  barsSupported,
  createMeasures,
  FEATURES,
  HORIZON_MINUTES,
  hourly,
  measure,
  measured,
  resum,
  timed,
  V60,
  type Measures,
} from './features.ts'
import { closeRow, coldFit, createRows, fitRows, openRow, predict, type Fit, type Rows } from './volatility-fit.ts'

/** Published with every snapshot; a change of what the numbers mean is a new name. */
export const MODEL = 'har-schmitt/1'

const DAY = 1440
const WEEK = 7 * DAY
/** Days the fit, the boundary and the reference volatility look back. */
const TRAILING_DAYS = 180
/** Every 7th minute is a training row. */
const STRIDE = 7
/** Days of training rows before fitted coefficients replace the cold ones. */
const FIT_AFTER_DAYS = 30
const BOUNDARY_QUANTILE = 0.65
const HALF_LIFE = 30
const RISE = 0.6
const FALL = 0.4
const LEAST_SCALAR = 0.25
const GREATEST_SCALAR = 1.5
/** Missing minutes up to here count as quiet; a longer hole holds the state and measures nothing. */
export const LONGEST_QUIET = 30

export interface ModelState {
  readonly barMinutes: number
  /** Close of the last bar taken in, in minutes since 1970. */
  minute: number
  readonly filter: PrintFilter
  readonly measures: Measures
  readonly rows: Rows
  fit: Fit
  /** False where the fit given at the start is kept. */
  readonly refits: boolean
  /** Hourly v60 of the trailing 180 days. */
  readonly hours: SortedWindow
  boundary: number
  /** Median of the hourly volatility: what a position scalar of 1 stands for. */
  reference: number
  /** Smoothed probability; NaN before the first. */
  probability: number
  volatile: boolean
  /** Minute of the last change of label. */
  since: number
  /** The last step emitted; every emission is this object. */
  readonly step: Step
}

/** One snapshot, in the model's units: log volatility per square root of a minute. */
export interface Step {
  /** Close of the bar, in minutes since 1970. */
  minute: number
  volatile: boolean
  /** Smoothed chance that the next hour is more volatile than the boundary. */
  probability: number
  forecast: number
  boundary: number
  /** The last hour's; NaN where it was interrupted. */
  realized: number
  scalar: number
  since: number
  bars: number
  /** True within a hole in the data: the labels are the last ones known. */
  held: boolean
}

/**
 * A model that has seen nothing, for bars of 1, 5, 15 or 60 minutes; RangeError for others. With a fit of other data it
 * forecasts by that one alone; without, it starts cold and fits itself every week.
 */
export function createModel(barMinutes: number, fit?: Fit): ModelState {
  if (!barsSupported(barMinutes)) throw new RangeError(`bars of ${barMinutes} minutes are not supported`)
  const stride = Math.max(STRIDE, barMinutes)
  return {
    barMinutes,
    minute: NaN,
    filter: createPrintFilter(),
    measures: createMeasures(barMinutes),
    rows: createRows(Math.floor((TRAILING_DAYS * DAY) / stride)),
    fit: fit ?? coldFit(),
    refits: fit === undefined,
    hours: createSortedWindow(TRAILING_DAYS * 24),
    boundary: NaN,
    reference: NaN,
    probability: NaN,
    volatile: false,
    since: NaN,
    step: {
      minute: NaN,
      volatile: false,
      probability: NaN,
      forecast: NaN,
      boundary: NaN,
      realized: NaN,
      scalar: NaN,
      since: NaN,
      bars: 0,
      held: false,
    },
  }
}

const bar: FilteredBar = { open: 0, high: 0, low: 0, close: 0, verdict: 'good' }
const features = new Float64Array(FEATURES)

/**
 * Takes in the bar that opened at `opened` (minutes since 1970) and emits one step for it, and before it one for every
 * missing bar. Nothing is emitted in the first day. A bar that is not newer than the last is ignored.
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
    for (let i = 0; i < missing; i += 1) hold(state, emit)
    state.filter.close = NaN
  } else {
    const last = state.filter.close
    for (let i = 0; i < missing; i += 1) take(state, last, last, last, last, emit)
  }
  if (Number.isNaN(state.minute)) state.minute = opened
  take(state, open, high, low, close, emit)
}

/** A minute of a hole: time passes, nothing is learnt. */
function hold(state: ModelState, emit: (step: Step) => void): void {
  const { step } = state
  state.minute += state.barMinutes
  step.held = true
  step.minute = state.minute
  step.realized = NaN
  if (!Number.isNaN(state.probability)) emit(step)
}

function take(
  state: ModelState,
  open: number,
  high: number,
  low: number,
  close: number,
  emit: (step: Step) => void,
): void {
  const { measures, rows, barMinutes } = state
  const previous = state.filter.close
  filterPrint(state.filter, bar, open, high, low, close)
  measure(measures, bar, previous)
  state.minute += barMinutes
  const { minute } = state
  if (minute % DAY === 0) resum(measures)
  measured(measures, features)
  timed(minute, features)
  const realized = hourly(measures)

  if (!Number.isNaN(realized)) {
    const within = Math.ceil(HORIZON_MINUTES / Math.max(STRIDE, barMinutes)) + 1
    if (isRow(minute - HORIZON_MINUTES, barMinutes)) closeRow(rows, minute - HORIZON_MINUTES, realized, within)
  }
  if (measures.count * barMinutes < DAY) return
  if (isRow(minute, barMinutes)) openRow(rows, minute, features)
  if (minute % 60 === 0) startHour(state)
  if (minute % WEEK === 0 && state.refits) refit(state)
  if (Number.isNaN(state.boundary)) return
  judge(state, realized)
  emit(state.step)
}

function isRow(minute: number, barMinutes: number): boolean {
  return barMinutes >= STRIDE || (minute / barMinutes) % STRIDE === 0
}

/** The boundary of an hour knows the hours up to the one before; then the hour just ended joins them. */
function startHour(state: ModelState): void {
  if (state.hours.size > 0) {
    state.boundary = windowQuantile(state.hours, BOUNDARY_QUANTILE)
    state.reference = windowQuantile(state.hours, 0.5)
  }
  pushSorted(state.hours, features[V60]!)
}

function refit(state: ModelState): void {
  const rowsADay = DAY / Math.max(STRIDE, state.barMinutes)
  state.fit = fitRows(state.rows, FIT_AFTER_DAYS * rowsADay) ?? state.fit
}

function judge(state: ModelState, realized: number): void {
  const forecast = predict(state.fit.coefficients, features)
  const chance = 1 - empiricalCdf(state.fit.residuals, state.boundary - forecast)
  const fresh = Number.isNaN(state.probability)
  const weight = 1 - 2 ** (-state.barMinutes / HALF_LIFE)
  state.probability = fresh ? chance : state.probability + weight * (chance - state.probability)
  const volatile = state.volatile ? state.probability >= FALL : state.probability > RISE
  if (fresh || volatile !== state.volatile) state.since = state.minute
  state.volatile = volatile

  const { step } = state
  step.minute = state.minute
  step.volatile = volatile
  step.probability = state.probability
  step.forecast = forecast
  step.boundary = state.boundary
  step.realized = realized
  step.scalar = Math.min(GREATEST_SCALAR, Math.max(LEAST_SCALAR, Math.exp(state.reference - forecast)))
  step.since = state.since
  step.bars = Math.min(state.measures.count, (TRAILING_DAYS * DAY) / state.barMinutes)
  step.held = false
}
