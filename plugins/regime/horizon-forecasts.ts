/** The forecasts of the longer horizons of one market, read from its stored snapshots. */
import { LRUCache } from 'lru-cache'
import type { Snapshots, Span } from './snapshots.ts'
import {
  FIT_SECONDS,
  fitHorizon,
  forecastHorizon,
  type HorizonFit,
  type HorizonForecast,
  type HourRow,
  type LongHorizon,
  WEEK,
} from './volatility-horizons.ts'

const HOUR = 3600
const COLUMNS = ['as_of', 'known_at', 'forecast_vol', 'realized_vol_1h'] as const
/** More than the weeks of the longest page. */
const MAX_FITS = 64
/** More than the horizons of the current regime and of the sample. */
const MAX_FORECASTS = 16

/** The time of the fit behind the forecast of an hour: the last week that began before it. */
const fitTimeOf = (hour: number): number => Math.floor((hour - 1) / WEEK) * WEEK

export class HorizonForecasts {
  readonly #stored: Snapshots
  readonly #fits = new LRUCache<string, HorizonFit>({ max: MAX_FITS })
  readonly #forecasts = new LRUCache<string, HorizonForecast>({ max: MAX_FORECASTS })

  /** All snapshots that the forecasts rest on must be stored: see `Snapshots.missing`. */
  constructor(stored: Snapshots) {
    this.#stored = stored
  }

  /** The forecast of the last whole hour up to `asOf`, if it was asked for before. */
  recall(horizon: LongHorizon, asOf: number): HorizonForecast | undefined {
    return this.#forecasts.get(`${horizon} ${hourOf(asOf)}`)
  }

  /** The forecast of the last whole hour up to `asOf`; null while there are too few hours. */
  async at(horizon: LongHorizon, asOf: number): Promise<HorizonForecast | null> {
    const hour = hourOf(asOf)
    const [forecast] = await this.of(horizon, { from: hour, to: hour + 1 })
    if (forecast) this.#forecasts.set(`${horizon} ${hour}`, forecast)
    return forecast ?? null
  }

  /** The forecasts of the whole hours of a span, oldest first. Hours without a snapshot, or with too few before, have none. */
  async of(horizon: LongHorizon, { from, to }: Span): Promise<HorizonForecast[]> {
    const weeks: number[] = []
    for (let time = fitTimeOf(from); time < to; time += WEEK) weeks.push(time)
    const needed = weeks.map((time) => (this.#fits.has(`${horizon} ${time}`) ? time : time - FIT_SECONDS))
    const all = { asOf: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER, everySeconds: HOUR }
    const rows = await this.#stored.between(COLUMNS, { ...all, from: Math.min(...needed) + 1, to })
    return weeks.flatMap((time) => {
      const fit = this.#fitAt(horizon, time, rows)
      const week = rows.filter(({ as_of: asOf }) => asOf > time && asOf <= time + WEEK)
      return week.flatMap(({ as_of: asOf }, i) => {
        const forecast = asOf < from ? null : forecastHorizon(fit, week.slice(0, i + 1))
        return forecast ? [forecast] : []
      })
    })
  }

  #fitAt(horizon: LongHorizon, time: number, rows: readonly HourRow[]): HorizonFit {
    const key = `${horizon} ${time}`
    let fit = this.#fits.get(key)
    if (!fit) {
      const isBefore = ({ as_of: asOf, known_at: known }: HourRow): boolean =>
        asOf > time - FIT_SECONDS && asOf <= time && known <= time
      fit = fitHorizon(rows.filter(isBefore), horizon)
      this.#fits.set(key, fit)
    }
    return fit
  }
}

const hourOf = (asOf: number): number => Math.floor(asOf / HOUR) * HOUR
