/**
 * Forecasts the volatility of the next 4 hours, day and week from the hourly snapshots of a market, and the size of a
 * position from the forecast. It reads what is stored and sold, so a buyer of the history can repeat every number.
 *
 * The logarithm of the forecast is a weighted sum of three: the model's own of the next hour, and the volatilities by averages
 * of hourly variance with half-lives of 11 hours and a week. The weights are pooled over several markets and do not change.
 * Mean and quantiles follow from the errors in this market over the last 180 days, renewed every week.
 *
 * All volatilities are annualised fractions, all times epoch seconds.
 */
import { readFileSync } from 'node:fs'
import { quantileSorted } from '../lib/quant/descriptive-statistics.ts'
import type { Horizon } from '../../schemas/types.d.ts'

/** Length of each horizon, and how far a position may be from its target before it is traded: a log of the ratio. */
export const HORIZONS = {
  '1h': { minutes: 60, band: 0.5 },
  '4h': { minutes: 240, band: 0.5 },
  '1d': { minutes: 1440, band: 0.2 },
  '1w': { minutes: 10_080, band: 0.1 },
} as const satisfies Record<Horizon, object>
export type LongHorizon = Exclude<Horizon, '1h'>

/**
 * The volatility that the scalars of the longer horizons aim at. It is fixed, because a target that follows the market does
 * not make a year even.
 */
export const TARGET_VOL = 0.5
const LEAST_SCALAR = 0.05
const GREATEST_SCALAR = 5

const HOUR = 3600
export const WEEK = 7 * 24 * HOUR
const TRAILING = 180 * 24 * HOUR
/** How long before the time of a fit its first hour is. The averages start a week before the first error that counts. */
export const FIT_SECONDS = TRAILING + WEEK
/** Half-lives of the averages, in hours. */
const HALF_LIVES = [11, 168] as const
/** Fewer hours with a volatility than this make no forecast. */
const LEAST_HOURS = 24
/** The pooled errors count as much as this many horizons that do not overlap. */
const POOLED_CASES = 20
/** Share of the hours of a horizon whose volatility must be known. */
const LEAST_SHARE = 0.75
/** Added to a variance before its logarithm, so that a flat market has one. */
const EPSILON = 1e-6

/** What a snapshot at a whole hour says. */
export interface HourRow {
  readonly as_of: number
  readonly known_at: number
  readonly forecast_vol: number
  /** Null where it is not known. Such an hour does not count. */
  readonly realized_vol_1h: number | null
}

/** Weights of the logs of the next hour's forecast and of the averages, and the constant; and the errors of the forecast. */
export interface PooledHorizon extends HorizonErrors {
  readonly weights: readonly [hour: number, day: number, week: number, constant: number]
}

/** Errors of the log forecast: quantiles, and the mean of exp(2 error). */
export interface HorizonErrors {
  readonly p10: number
  readonly median: number
  readonly p90: number
  readonly mean_square: number
}

/** The averages of variance after some hours, as plain numbers. */
interface Averages {
  readonly hours: number
  readonly variances: readonly [number, number]
}

/** What the hours up to a time say of those after it. */
export interface HorizonFit {
  readonly horizon: LongHorizon
  readonly averages: Averages
  readonly errors: HorizonErrors
}

export interface HorizonForecast {
  /** The whole hour at which the forecast was made. */
  readonly as_of: number
  /** exp of the log forecast. */
  readonly forecast_vol: number
  readonly forecast_vol_mean: number
  readonly forecast_vol_median: number
  readonly forecast_vol_p10: number
  readonly forecast_vol_p90: number
  readonly position_scalar: number
}

/** The weights and first errors of each horizon. `npm run lab -- regime --pool FILE...` writes them. */
export const { horizons: POOLED } = JSON.parse(readFileSync(new URL('pooled-fit.json', import.meta.url), 'utf8')) as {
  readonly horizons: Readonly<Record<LongHorizon, PooledHorizon>>
}

const DECAYS = HALF_LIVES.map((hours) => 1 - 2 ** (-1 / hours))

function withHour({ hours, variances }: Averages, { realized_vol_1h: vol }: HourRow): Averages {
  if (vol === null) return { hours, variances }
  const next = (i: 0 | 1): number => variances[i] + Math.max(DECAYS[i]!, 1 / (hours + 1)) * (vol * vol - variances[i])
  return { hours: hours + 1, variances: [next(0), next(1)] }
}

const logVolatility = (variance: number): number => 0.5 * Math.log(variance + EPSILON)

/** The regressors of each hour: its forecast of the next one and the averages up to it; null while there are too few hours. */
export function regressorsOf(rows: readonly HourRow[]): readonly (readonly [number, number, number, 1] | null)[] {
  let averages: Averages = { hours: 0, variances: [0, 0] }
  return rows.map((row) => {
    averages = withHour(averages, row)
    return averages.hours < LEAST_HOURS ? null : regressors(row, averages)
  })
}

const regressors = ({ forecast_vol: hour }: HourRow, { variances: [day, week] }: Averages) =>
  [Math.log(hour + EPSILON), logVolatility(day), logVolatility(week), 1] as const

/** The log volatility of the horizon after each hour; NaN where less than three quarters of it are known, or it is not over. */
export function outcomesOf(rows: readonly HourRow[], horizon: LongHorizon): Float64Array {
  const hours = HORIZONS[horizon].minutes / 60
  const outcomes = new Float64Array(rows.length).fill(NaN)
  const newest = rows.at(-1)?.as_of ?? 0
  let [end, known, sum] = [0, 0, 0]
  const count = (at: number, sign: 1 | -1): void => {
    const vol = rows[at]!.realized_vol_1h
    if (vol === null) return
    known += sign
    sum += sign * vol * vol
  }
  for (const [i, { as_of: asOf }] of rows.entries()) {
    for (; end < rows.length && rows[end]!.as_of <= asOf + hours * HOUR; end += 1) count(end, 1)
    count(i, -1)
    if (asOf + hours * HOUR <= newest && known >= LEAST_SHARE * hours)
      outcomes[i] = logVolatility(Math.max(0, sum) / known)
  }
  return outcomes
}

const logForecast = ({ weights }: PooledHorizon, values: readonly number[]): number =>
  weights.reduce((sum, weight, i) => sum + weight * values[i]!, 0)

/** Fits the errors of one horizon to the hours of FIT_SECONDS up to a time, oldest first. */
export function fitHorizon(rows: readonly HourRow[], horizon: LongHorizon): HorizonFit {
  const pooled = POOLED[horizon]
  const outcomes = outcomesOf(rows, horizon)
  const from = (rows.at(-1)?.as_of ?? 0) - TRAILING
  const errors = regressorsOf(rows).flatMap((values, i) =>
    values === null || Number.isNaN(outcomes[i]) || rows[i]!.as_of <= from
      ? []
      : outcomes[i]! - logForecast(pooled, values),
  )
  const own = errorsOf(errors)
  const cases = (errors.length * 60) / HORIZONS[horizon].minutes
  const mix = (name: keyof HorizonErrors): number =>
    own === null ? pooled[name] : (cases * own[name] + POOLED_CASES * pooled[name]) / (cases + POOLED_CASES)
  return {
    horizon,
    averages: rows.reduce(withHour, { hours: 0, variances: [0, 0] }),
    errors: { p10: mix('p10'), median: mix('median'), p90: mix('p90'), mean_square: mix('mean_square') },
  }
}

/** Quantiles and mean square of errors; null of none. */
export function errorsOf(errors: readonly number[]): HorizonErrors | null {
  if (errors.length === 0) return null
  const sorted = Float64Array.from(errors).sort()
  const [p10, median, p90] = [0.1, 0.5, 0.9].map((share) => quantileSorted(sorted, share)) as [number, number, number]
  return { p10, median, p90, mean_square: sorted.reduce((sum, error) => sum + Math.exp(2 * error), 0) / sorted.length }
}

/**
 * The forecast of the hour of the last of `rows`: the hours since the fit, oldest first. An hour that became known later than
 * that one does not count. Null while there are fewer than 24 hours.
 */
export function forecastHorizon(fit: HorizonFit, rows: readonly HourRow[]): HorizonForecast | null {
  const last = rows.at(-1)!
  const averages = rows.filter(({ known_at: known }) => known <= last.as_of).reduce(withHour, fit.averages)
  if (averages.hours < LEAST_HOURS) return null
  const forecast = logForecast(POOLED[fit.horizon], regressors(last, averages))
  const { p10, median, p90, mean_square: meanSquare } = fit.errors
  const vol = Math.exp(forecast)
  return {
    as_of: last.as_of,
    forecast_vol: vol,
    forecast_vol_mean: vol * Math.sqrt(meanSquare),
    forecast_vol_median: vol * Math.exp(median),
    forecast_vol_p10: vol * Math.exp(p10),
    forecast_vol_p90: vol * Math.exp(p90),
    position_scalar: Math.min(GREATEST_SCALAR, Math.max(LEAST_SCALAR, TARGET_VOL / vol)),
  }
}

/** The positions between which trading costs more than it evens out: a factor around the scalar. */
export function noTradeBand(horizon: Horizon, scalar: number): { readonly low: number; readonly high: number } {
  const factor = Math.exp(HORIZONS[horizon].band)
  return { low: scalar / factor, high: scalar * factor }
}
