/**
 * The model that a buyer could have for free: a logistic regression of the log volatilities of an hour and of averages with
 * half-lives of 4, 11 and 24 hours, each over the boundary, and of the hour of working days and weekends. It says whether the
 * next hour exceeds the boundary, and is refitted every week on 180 days.
 */
import {
  addExpected,
  addObservation,
  createNormalEquations,
  solveNormalEquations,
} from '../../../plugins/lib/quant/least-squares.ts'
import { forwardOf } from './model-figures.ts'
import type { Track } from './model-track.ts'

const WEEK = 7 * 1440
const TRAILING = 180 * 1440
const STEPS = 6
const VOLATILITIES = 4
const SIZE = VOLATILITIES + 1 + 48
/** How much the coefficients are drawn towards zero, in rows. */
const RIDGE = 2
/** Before the first fit: the boundary is the 0.65 quantile. */
const BASE_RATE = 0.35

const logistic = (score: number): number => 1 / (1 + Math.exp(-score))

/** Returns the probability that the hour after each step is above its boundary, from what was known at the step. */
export function freeLogistic(track: Track): Float64Array {
  const { minute, count, stepMinutes } = track
  const above = forwardOf(track).map((after, i) => (Number.isNaN(after) ? NaN : after > track.boundary[i]! ? 1 : 0))
  const stride = Math.ceil(7 / stepMinutes)
  let coefficients: Float64Array | null = null
  const [places, values] = [new Int32Array(VOLATILITIES + 2), new Float64Array(VOLATILITIES + 2)]
  const score = (i: number): number => {
    if (!writeRow(track, i, places, values)) return NaN
    return values.reduce((sum, value, k) => sum + value * coefficients![places[k]!]!, 0)
  }
  return Float64Array.from({ length: count }, (_, i) => {
    const at = minute[i]!
    if (at % WEEK === 0) {
      const rows: number[] = []
      for (let k = i - 60 / stepMinutes; k >= 0 && minute[k]! > at - TRAILING; k -= stride)
        if (!Number.isNaN(above[k]!) && writeRow(track, k, places, values)) rows.push(k)
      if (rows.length > 0) coefficients = fit(track, rows, above)
    }
    const chance = coefficients === null ? NaN : logistic(score(i))
    return Number.isNaN(chance) ? BASE_RATE : chance
  })
}

/** Writes the regressors of a step; false if a volatility is unknown. */
function writeRow(track: Track, i: number, places: Int32Array, values: Float64Array): boolean {
  const { minute, realized, ewma4, ewma, ewma24, boundary } = track
  const day = Math.floor(minute[i]! / 1440) % 7
  const hour = (Math.floor(minute[i]! / 60) % 24) + (day === 2 || day === 3 ? 24 : 0)
  places.set([0, 1, 2, 3, 4, 5 + hour])
  values.set([realized[i]!, ewma4[i]!, ewma[i]!, ewma24[i]!].map((log) => Math.max(-5, log - boundary[i]!)))
  values[VOLATILITIES] = 1
  values[VOLATILITIES + 1] = 1
  return !Number.isNaN(realized[i]! + boundary[i]!)
}

/** Iteratively reweighted least squares. */
function fit(track: Track, rows: readonly number[], above: Float64Array): Float64Array {
  let coefficients: Float64Array = new Float64Array(SIZE)
  const [places, values] = [new Int32Array(VOLATILITIES + 2), new Float64Array(VOLATILITIES + 2)]
  for (let step = 0; step < STEPS; step += 1) {
    const equations = createNormalEquations(SIZE)
    for (const row of rows) {
      writeRow(track, row, places, values)
      let score = 0
      for (let k = 0; k < values.length; k += 1) score += values[k]! * coefficients[places[k]!]!
      const chance = logistic(score)
      const weight = Math.max(1e-6, chance * (1 - chance))
      const root = Math.sqrt(weight)
      for (let k = 0; k < values.length; k += 1) values[k]! *= root
      addObservation(equations, places, values, (score + (above[row]! - chance) / weight) * root)
    }
    addExpected(equations, new Float64Array(SIZE), new Float64Array(SIZE).fill(RIDGE / 4))
    coefficients = solveNormalEquations(equations)
  }
  return coefficients
}
