/**
 * Forecasts the log volatility of the next hour by least squares on the last 180 days, with the distribution of the
 * residuals. Until there is enough history, it uses coefficients measured on data of 2017.
 */
import { sortedByBuckets } from '../lib/quant/bucket-sort.ts'
import { addColumns, createNormalEquations, solveNormalEquations } from '../lib/quant/least-squares.ts'
import { quantileSorted } from '../lib/quant/descriptive-statistics.ts'
import { FEATURES, MEASURED, writeTimeFeatures } from './volatility-features.ts'

const QUANTILES = 401

export interface Fit {
  readonly coefficients: Float64Array
  /** 401 quantiles of the residuals, evenly spaced in probability. */
  readonly residuals: Float64Array
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

/** Fits all rows with an outcome; null if there are fewer than `fewest`. */
export function fitRows(rows: Rows, fewest: number): Fit | null {
  const size = Math.min(rows.count, rows.capacity)
  const slots = new Int32Array(size)
  let n = 0
  for (let slot = 0; slot < size; slot += 1)
    if (!Number.isNaN(rows.outcomes[slot]!)) {
      slots[n] = slot
      n += 1
    }
  if (n < fewest) return null
  const columns = Array.from({ length: FEATURES }, () => new Float64Array(n))
  const outcomes = new Float64Array(n)
  const x = new Float64Array(FEATURES)
  for (let row = 0; row < n; row += 1) {
    const slot = slots[row]!
    outcomes[row] = rows.outcomes[slot]!
    writeTimeFeatures(rows.minutes[slot]!, x)
    for (let i = 0; i < MEASURED; i += 1) columns[i]![row] = rows.features[slot * MEASURED + i]!
    for (let i = MEASURED; i < FEATURES; i += 1) columns[i]![row] = x[i]!
  }
  const equations = createNormalEquations(FEATURES)
  addColumns(equations, columns, outcomes)
  const coefficients = solveNormalEquations(equations)
  const forecasts = new Float64Array(n)
  for (let i = 0; i < FEATURES; i += 1) {
    const [column, coefficient] = [columns[i]!, coefficients[i]!]
    for (let row = 0; row < n; row += 1) forecasts[row]! += coefficient * column[row]!
  }
  const errors = new Float64Array(n)
  for (let row = 0; row < n; row += 1) errors[row] = outcomes[row]! - forecasts[row]!
  const sorted = sortedByBuckets(errors)
  const residuals = Float64Array.from({ length: QUANTILES }, (_, i) => quantileSorted(sorted, i / (QUANTILES - 1)))
  return { coefficients, residuals }
}

/** The forecast: coefficients times features. */
export function predict(coefficients: Float64Array, features: Float64Array): number {
  let sum = 0
  for (let i = 0; i < FEATURES; i += 1) sum += coefficients[i]! * features[i]!
  return sum
}

/** Least squares on BTC and ETH minutes of 2017. v10080 and the range need more than a day of history and have weight 0. */
const COLD_COEFFICIENTS = [
  0.036, 0.0423, 0.174, 0.3705, 0.3221, 0, 0, -0.0243, -0.0278, -0.004, 0.0291, -0.019, -0.4566,
]
/** Residual quantiles. The ends are the 1% and 99% ones, extended by half their distance to the 5% and 95% ones. */
const COLD_RESIDUALS: readonly (readonly [probability: number, residual: number])[] = [
  [0, -1.393],
  [0.01, -1.152],
  [0.05, -0.67],
  [0.1, -0.505],
  [0.25, -0.264],
  [0.5, -0.012],
  [0.75, 0.262],
  [0.9, 0.553],
  [0.95, 0.766],
  [0.99, 1.256],
  [1, 1.501],
]

/** The initial fit of a series, used from its second day on. */
export function coldFit(): Fit {
  const residuals = Float64Array.from({ length: QUANTILES }, (_, i) => {
    const probability = i / (QUANTILES - 1)
    const above = Math.max(
      1,
      COLD_RESIDUALS.findIndex(([bound]) => bound >= probability),
    )
    const [lowAt, low] = COLD_RESIDUALS[above - 1]!
    const [highAt, high] = COLD_RESIDUALS[above]!
    return low + ((probability - lowAt) / (highAt - lowAt)) * (high - low)
  })
  return { coefficients: Float64Array.from(COLD_COEFFICIENTS), residuals }
}
