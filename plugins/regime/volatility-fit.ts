/**
 * Forecasts the log volatility of the next hour by least squares on the last 180 days, with the distribution of the
 * residuals. Coefficients are drawn towards those pooled over several markets, so the first days have a fit too.
 */
import { readFileSync } from 'node:fs'
import { sortedByBuckets } from '../lib/quant/bucket-sort.ts'
import {
  addExpected,
  addObservation,
  createNormalEquations,
  type NormalEquations,
  solveNormalEquations,
} from '../lib/quant/least-squares.ts'
import { quantileSorted } from '../lib/quant/descriptive-statistics.ts'
import { CELLS, FEATURES, MEASURED, writeTimeFeatures } from './volatility-features.ts'

const QUANTILES = 401

export interface Fit {
  /** Of the features, then of the cells of the season. */
  readonly coefficients: Float64Array
  /** 401 quantiles of the residuals, evenly spaced in probability. */
  readonly residuals: Float64Array
  /** Mean of exp(2 residual): by this the mean variance exceeds exp(2 forecast). */
  readonly meanSquare: number
  /** Rows behind the fit. */
  readonly rows: number
}

/** A ring of training rows, as plain data. A row is written first; its outcome follows an hour later. */
export interface Rows {
  readonly capacity: number
  /** Row k is stored at k modulo the capacity. */
  count: number
  readonly minutes: Float64Array
  readonly features: Float64Array
  /** NaN until known; stays NaN if the following hour was interrupted. */
  readonly outcomes: Float64Array
}

/** Creates an empty ring for `capacity` rows. */
export function createRows(capacity: number): Rows {
  return {
    capacity,
    count: 0,
    minutes: new Float64Array(capacity),
    features: new Float64Array(capacity * MEASURED),
    outcomes: new Float64Array(capacity).fill(NaN),
  }
}

/** Appends the measured features of a minute without an outcome. */
export function openRow(rows: Rows, minute: number, measured: Float64Array): void {
  const slot = rows.count % rows.capacity
  rows.minutes[slot] = minute
  rows.features.set(measured.subarray(0, MEASURED), slot * MEASURED)
  rows.outcomes[slot] = NaN
  rows.count += 1
}

/** Sets the outcome of the row of `minute`, if it is among the last `within` rows. */
export function closeRow(rows: Rows, minute: number, outcome: number, within: number): void {
  for (let k = rows.count - 1; k >= Math.max(0, rows.count - within); k -= 1) {
    if (rows.minutes[k % rows.capacity] !== minute) continue
    rows.outcomes[k % rows.capacity] = outcome
    return
  }
}

const COEFFICIENTS = FEATURES + CELLS
/** Places of the coefficients of a row: its features and its two cells. */
const places = Int32Array.from({ length: FEATURES + 2 }, (_, i) => i)
const values = new Float64Array(FEATURES + 2).fill(1)
const cells = new Int32Array(2)

/** Calls `visit` for each row with an outcome, while `places` and `values` are those of the row. */
function eachRow(rows: Rows, visit: (outcome: number) => void): void {
  for (let slot = 0; slot < Math.min(rows.count, rows.capacity); slot += 1) {
    const outcome = rows.outcomes[slot]!
    if (Number.isNaN(outcome)) continue
    writeTimeFeatures(rows.minutes[slot]!, values, cells)
    for (let i = 0; i < MEASURED; i += 1) values[i] = rows.features[slot * MEASURED + i]!
    for (let i = 0; i < 2; i += 1) places[FEATURES + i] = FEATURES + cells[i]!
    visit(outcome)
  }
}

function equationsOf(rows: Rows): NormalEquations {
  const equations = createNormalEquations(COEFFICIENTS)
  eachRow(rows, (outcome) => addObservation(equations, places, values, outcome))
  return equations
}

/** What coefficients leave of the outcomes, ascending. */
function residualsOf(rows: Rows, coefficients: Float64Array, count: number): Float64Array {
  const errors = new Float64Array(count)
  let row = 0
  eachRow(rows, (outcome) => {
    let forecast = 0
    for (let i = 0; i < places.length; i += 1) forecast += coefficients[places[i]!]! * values[i]!
    errors[row] = outcome - forecast
    row += 1
  })
  return sortedByBuckets(errors)
}

const quantilesOf = (sorted: Float64Array): Float64Array =>
  Float64Array.from({ length: QUANTILES }, (_, i) => quantileSorted(sorted, i / (QUANTILES - 1)))

const meanSquareOf = (errors: Float64Array): number =>
  errors.reduce((sum, error) => sum + Math.exp(2 * error), 0) / errors.length

/** The pooled coefficients count as much as this many days of rows: of the features, and of the cells of the season. */
const POOLED_DAYS = 3
const SEASON_DAYS = 3
/** The pooled residuals count as much as those of this many days. */
const RESIDUAL_DAYS = 1.5
/** Typical square of the features, measured ones as deviations from their mean. */
const SQUARES = Float64Array.from({ length: COEFFICIENTS }, (_, i) => {
  if (i < MEASURED) return 0.36 * POOLED_DAYS
  if (i < FEATURES - 1) return 0.25 * POOLED_DAYS
  return i < FEATURES ? POOLED_DAYS : SEASON_DAYS
})

/** Fits all rows with an outcome, starting from `pooled`; null if there are none. */
export function fitRows(rows: Rows, rowsADay: number, pooled: Fit): Fit | null {
  const equations = equationsOf(rows)
  if (equations.rows === 0) return null
  const strengths = SQUARES.map((square) => square * rowsADay)
  addExpected(equations, pooled.coefficients, strengths)
  const coefficients = solveNormalEquations(equations)
  const errors = residualsOf(rows, coefficients, equations.rows)
  const own = equations.rows / (equations.rows + RESIDUAL_DAYS * rowsADay)
  return {
    coefficients,
    residuals: quantilesOf(errors).map((quantile, i) => own * quantile + (1 - own) * pooled.residuals[i]!),
    meanSquare: own * meanSquareOf(errors) + (1 - own) * pooled.meanSquare,
    rows: equations.rows,
  }
}

/** Strength of the season's zeros in the pooled fit, as a share of the rows. */
const POOLED_SEASON = 1 / 30

/** One fit of the rows of several markets, each with the same weight. */
export function poolRows(markets: readonly Rows[]): Fit {
  const sum = createNormalEquations(COEFFICIENTS)
  const found = markets.map(equationsOf)
  for (const { products, moments, rows } of found) {
    for (const [i, product] of products.entries()) sum.products[i]! += product / rows
    for (const [i, moment] of moments.entries()) sum.moments[i]! += moment / rows
    sum.rows += 1
  }
  const strengths = SQUARES.map((_, i) => (i < FEATURES - 1 ? 0.02 : i < FEATURES ? 1e-6 : POOLED_SEASON))
  addExpected(sum, new Float64Array(COEFFICIENTS), strengths)
  const coefficients = solveNormalEquations(sum)
  const errors = markets.map((rows, i) => residualsOf(rows, coefficients, found[i]!.rows))
  const residuals = Float64Array.from({ length: QUANTILES }, (_, i) => {
    const quantiles = errors.map((sorted) => quantileSorted(sorted, i / (QUANTILES - 1)))
    return quantiles.reduce((total, quantile) => total + quantile, 0) / markets.length
  })
  // Without the outermost hundredths: single hours decide them.
  return { coefficients, residuals, meanSquare: meanSquareOf(residuals.subarray(4, -4)), rows: 0 }
}

/** The forecast: coefficients times features, and those of the two cells. */
export function predict({ coefficients }: Fit, features: Float64Array, [hour, weekday]: Int32Array): number {
  let sum = coefficients[FEATURES + hour!]! + coefficients[FEATURES + weekday!]!
  for (let i = 0; i < FEATURES; i += 1) sum += coefficients[i]! * features[i]!
  return sum
}

/** The quantile of the residuals at a multiple of 1/400. */
export function quantileOf({ residuals }: Fit, probability: number): number {
  return residuals[Math.round(probability * (QUANTILES - 1))]!
}

const stored = JSON.parse(readFileSync(new URL('pooled-fit.json', import.meta.url), 'utf8')) as {
  readonly coefficients: readonly number[]
  readonly residuals: readonly number[]
  readonly mean_square: number
}

/** The fit that a series starts with, from its second day on. `npm run lab -- regime --pool FILE...` writes it. */
export const POOLED: Fit = {
  coefficients: Float64Array.from(stored.coefficients),
  residuals: Float64Array.from(stored.residuals),
  meanSquare: stored.mean_square,
  rows: 0,
}
