/** Forecasts of longer horizons, and sizing by them, over a run of the model. */
import {
  addExpected,
  addObservation,
  createNormalEquations,
  solveNormalEquations,
} from '../../../plugins/lib/quant/least-squares.ts'
import { roundTo } from '../../../plugins/lib/quant/rounding.ts'
import {
  errorsOf,
  FIT_SECONDS,
  fitHorizon,
  forecastHorizon,
  type HorizonForecast,
  HORIZONS,
  type HourRow,
  type LongHorizon,
  noTradeBand,
  outcomesOf,
  type PooledHorizon,
  regressorsOf,
  WEEK,
} from '../../../plugins/regime/volatility-horizons.ts'
import { resample } from './resampled-figures.ts'
import type { Track } from './model-track.ts'

export const LONG_HORIZONS = ['4h', '1d', '1w'] as const satisfies readonly LongHorizon[]
const HOUR = 3600

const annual = (log: number): number => roundTo(Math.exp(log) * Math.sqrt(365 * 1440), 4)

/** Indices of the steps at whole hours. */
const wholeHours = ({ minute }: Track): number[] => [...minute.keys()].filter((i) => minute[i]! % 60 === 0)

/** The snapshots at whole hours, as they are stored. */
export function hourRows(track: Track): HourRow[] {
  const { minute, forecast, realized } = track
  return wholeHours(track).map((i) => ({
    as_of: minute[i]! * 60,
    known_at: minute[i]! * 60,
    forecast_vol: annual(forecast[i]!),
    realized_vol_1h: Number.isNaN(realized[i]!) ? null : annual(realized[i]!),
  }))
}

/** The forecast of every hour, from the weekly fit before it; null while there are too few hours. */
export function foretell(rows: readonly HourRow[], horizon: LongHorizon): (HorizonForecast | null)[] {
  const fits = new Map<number, { readonly fit: ReturnType<typeof fitHorizon>; readonly next: number }>()
  return rows.map(({ as_of: asOf }, i) => {
    const time = Math.floor((asOf - 1) / WEEK) * WEEK
    if (!fits.has(time)) {
      const before = rows.slice(0, i).filter((row) => row.as_of > time - FIT_SECONDS)
      fits.set(time, { fit: fitHorizon(before, horizon), next: i })
    }
    const { fit, next } = fits.get(time)!
    return forecastHorizon(fit, rows.slice(next, i + 1))
  })
}

/** Which of the regressors each horizon has: the next hour's forecast, the averages of 11 hours and of a week, the constant. */
const PLACES: Readonly<Record<LongHorizon, readonly number[]>> = { '4h': [0, 1, 3], '1d': [1, 3], '1w': [1, 2, 3] }
/** The averages need a month before their errors count. */
const FIRST = 720

/** The weights of each horizon, by least squares over several markets with the same weight each, and the errors they leave. */
export function poolHorizons(markets: readonly (readonly HourRow[])[]): Record<LongHorizon, PooledHorizon> {
  return Object.fromEntries(LONG_HORIZONS.map((horizon) => [horizon, poolHorizon(markets, horizon)])) as Record<
    LongHorizon,
    PooledHorizon
  >
}

function poolHorizon(markets: readonly (readonly HourRow[])[], horizon: LongHorizon): PooledHorizon {
  const places = PLACES[horizon]
  const cases = markets.map((rows) => {
    const outcomes = outcomesOf(rows, horizon)
    return regressorsOf(rows).flatMap((values, i) =>
      values === null || i < FIRST || Number.isNaN(outcomes[i]) ? [] : [{ values, outcome: outcomes[i]! }],
    )
  })
  const equations = createNormalEquations(4)
  for (const market of cases)
    for (const { values, outcome } of market) {
      const root = 1 / Math.sqrt(market.length)
      const used = places.map((place) => values[place]! * root)
      addObservation(equations, places, used, outcome * root)
    }
  addExpected(equations, new Float64Array(4), new Float64Array(4).fill(1e-4))
  const weights = Array.from(solveNormalEquations(equations), (weight) => Number(weight.toFixed(4)))
  const errors = cases.map((market) => {
    const found = market.map(({ values, outcome }) => outcome - weights.reduce((sum, w, i) => sum + w * values[i]!, 0))
    // Without the outermost hundredths: single hours decide them.
    return errorsOf(found.toSorted((a, b) => a - b).slice(found.length / 100, -found.length / 100))!
  })
  const mean = (name: keyof (typeof errors)[number]): number =>
    Number((errors.reduce((sum, error) => sum + error[name], 0) / errors.length).toFixed(4))
  return {
    weights: weights as unknown as PooledHorizon['weights'],
    p10: mean('p10'),
    median: mean('median'),
    p90: mean('p90'),
    mean_square: mean('mean_square'),
  }
}

/** The size that a rule wants in each hour, how far from it a position may be, and at which hours it looks. */
interface Rule {
  readonly rule: string
  readonly sizes: ArrayLike<number>
  readonly band?: (size: number) => { readonly low: number; readonly high: number }
  readonly isDaily?: boolean
}

/** The rules whose turnover and evenness are measured. `forecasts` are those of every hour. */
function rulesOf(track: Track, forecasts: Readonly<Record<LongHorizon, readonly (HorizonForecast | null)[]>>): Rule[] {
  const hours = wholeHours(track)
  const inverse = (logs: Float64Array): number[] => hours.map((i) => Math.exp(-logs[i]!))
  const hourly = hours.map((i) => track.scalar[i]!)
  return [
    { rule: 'constant', sizes: hours.map(() => 1) },
    { rule: 'average 11 h, hourly', sizes: inverse(track.ewma) },
    { rule: 'average 11 h, daily', sizes: inverse(track.ewma), isDaily: true },
    { rule: 'average 24 h, daily', sizes: inverse(track.ewma24), isDaily: true },
    { rule: '1h without band', sizes: hourly },
    { rule: '1h', sizes: hourly, band: (size) => noTradeBand('1h', size) },
    ...LONG_HORIZONS.map((horizon) => ({
      rule: horizon,
      sizes: forecasts[horizon].map((forecast) => forecast?.position_scalar ?? NaN),
      band: (size: number) => noTradeBand(horizon, size),
    })),
  ]
}

/** Volatility of each whole week of a position that follows a rule, and its turnover in average positions a year. */
function follow({ sizes, band = (size) => ({ low: size, high: size }), isDaily }: Rule, track: Track, start: number) {
  const hours = wholeHours(track)
  let [position, traded, held] = [sizes[start]!, 0, 0]
  const variances: number[] = []
  for (let k = start; k + 1 < hours.length; k += 1) {
    const { low, high } = band(sizes[k]!)
    const isTrading = !isDaily || track.minute[hours[k]!]! % 1440 === 0
    const wanted = isTrading ? Math.min(Math.max(position, low), high) : position
    traded += Math.abs(wanted - position)
    position = wanted
    held += position
    let variance = 0
    for (let i = hours[k]! + 1; i <= hours[k + 1]!; i += 1) variance += track.change[i]! ** 2
    variances.push(position ** 2 * variance)
  }
  const weeks = Float64Array.from({ length: Math.floor(variances.length / 168) }, (_, week) =>
    Math.sqrt(variances.slice(week * 168, (week + 1) * 168).reduce((sum, variance) => sum + variance, 0)),
  )
  return { weeks, turns: (traded / held) * 8760 }
}

export interface SizingFigures {
  readonly rule: string
  readonly weeks: number
  /** Turnover in average positions. */
  readonly turns_per_year: number
  /** Standard deviation over mean of weekly volatility. */
  readonly weekly_vol_cv: number
  /** The central 95% of a stationary bootstrap of weeks. */
  readonly weekly_vol_cv_interval: readonly [number, number]
  /** Variation of weekly volatility less that of the daily average of 11 hours in the same weeks. */
  readonly less_daily_average: number
  readonly less_daily_average_interval: readonly [number, number]
}

/** Fewer weeks say nothing of how much they vary. */
const LEAST_WEEKS = 8

/** Measures the rules from a minute on, or from the first hour with a forecast; none over fewer than eight weeks. */
export function sizingOf(track: Track, from: number): SizingFigures[] {
  const rows = hourRows(track)
  const forecasts = { '4h': foretell(rows, '4h'), '1d': foretell(rows, '1d'), '1w': foretell(rows, '1w') }
  const start = rows.findIndex(
    ({ as_of: asOf }, i) => asOf >= from * 60 && LONG_HORIZONS.every((of) => forecasts[of][i]),
  )
  const rules = rulesOf(track, forecasts).map((rule) => ({ ...rule, ...follow(rule, track, start) }))
  if (rules[0]!.weeks.length < LEAST_WEEKS) return []
  const beside = rules.find(({ rule }) => rule === 'average 11 h, daily')!
  return rules.map(({ rule, weeks, turns }) => {
    const columns = [weeks.map(() => 1), ...[weeks, beside.weeks].flatMap((of) => [of, of.map((vol) => vol * vol)])]
    const { found, intervals } = resample(columns, ([count, ...sums]) => {
      const variation = (sum: number, squares: number): number => Math.sqrt((count! * squares) / sum ** 2 - 1)
      const cv = variation(sums[0]!, sums[1]!)
      return { cv, less: cv - variation(sums[2]!, sums[3]!) }
    })
    return {
      rule,
      weeks: weeks.length,
      turns_per_year: turns,
      weekly_vol_cv: found.cv,
      weekly_vol_cv_interval: intervals.cv,
      less_daily_average: found.less,
      less_daily_average_interval: intervals.less,
    }
  })
}

/** How good the forecasts of a horizon are, from a minute on, beside the average of 11 hours as it is. */
export function horizonFigures(track: Track, horizon: LongHorizon, from: number) {
  const rows = hourRows(track)
  const outcomes = outcomesOf(rows, horizon)
  const values = regressorsOf(rows)
  const cases = foretell(rows, horizon).flatMap((forecast, i) => {
    const [outcome, average] = [outcomes[i]!, values[i]?.[1]]
    if (!forecast || average === undefined || Number.isNaN(outcome) || rows[i]!.as_of < from * 60) return []
    return [{ ...forecast, vol: Math.exp(outcome), average: Math.exp(average) }]
  })
  const mean = (of: (one: (typeof cases)[number]) => number): number =>
    cases.reduce((sum, one) => sum + of(one), 0) / cases.length
  const qlike = (ratio: number): number => ratio - Math.log(ratio) - 1
  return {
    horizon,
    cases: Math.floor((cases.length * HOUR) / (HORIZONS[horizon].minutes * 60)),
    rms_ratio: Math.sqrt(mean((one) => (one.vol / one.forecast_vol_mean) ** 2)),
    qlike: mean((one) => qlike((one.vol / one.forecast_vol_mean) ** 2)),
    average_qlike: mean((one) => qlike((one.vol / one.average) ** 2)),
    within_p10_p90: mean((one) => (one.vol >= one.forecast_vol_p10 && one.vol <= one.forecast_vol_p90 ? 1 : 0)),
  }
}
