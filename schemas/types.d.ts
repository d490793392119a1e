/**
 * Made by scripts/types.ts from catalog/ and schemas/. Do not edit: run `npm run types`.
 * The shapes have their names from the $defs; Plugins gets the input and output of every handler.
 */

/**
 * Any spelling; case, dash, slash and underscore do not matter.
 */
export type MarketSymbol = string
/**
 * ISO 8601 (UTC where no zone is given), or seconds or milliseconds since 1970.
 */
export type Moment = string | number

export type Products = {
  market: {
    getBars: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: BarsQuery
        body: undefined
      }
      output: Bars
    }
    getMarketStatus: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: MarketStatusQuery
        body: undefined
      }
      output: MarketStatus
    }
    getSymbols: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: Readonly<Record<string, unknown>>
        body: undefined
      }
      output: CoveredSymbols
    }
  }
  regime: {
    getRegimeCurrent: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: Readonly<Record<string, unknown>>
        body: undefined
      }
      output: Snapshot
    }
    getRegimeHistory: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: RegimeHistoryQuery
        body: undefined
      }
      output: RegimeHistory
    }
    getRegimeSample: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: Readonly<Record<string, unknown>>
        body: undefined
      }
      output: Snapshot
    }
  }
  site: {
    getDocs: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: Readonly<Record<string, unknown>>
        body: undefined
      }
      output: unknown
    }
    getHome: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: HomeQuery
        body: undefined
      }
      output: unknown
    }
    getMethodology: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: Readonly<Record<string, unknown>>
        body: undefined
      }
      output: unknown
    }
    getPricingPage: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: PricingQuery
        body: undefined
      }
      output: unknown
    }
  }
}
export type BarsQuery = {
  symbol: MarketSymbol
  /**
   * First open wanted, epoch seconds.
   */
  from: number
  /**
   * Opens before this, epoch seconds. Default: the moment of the call.
   */
  to?: number
  /**
   * Seconds a bar lasts. Finer bars are joined where this interval is not stored.
   */
  interval: number
}
/**
 * Columns of equal length, oldest first. The last bar is closed; what is still forming is left out.
 */
export type Bars = {
  symbol: string
  venue: string
  interval_seconds: number
  count: number
  time: Float64Array
  open: Float64Array
  high: Float64Array
  low: Float64Array
  close: Float64Array
  volume: Float64Array
  state: Uint8Array
}
export type MarketStatusQuery = {
  symbol: MarketSymbol
}
export type MarketStatus = {
  symbol: string
  origin: string
  /**
   * False while the history is still being fetched.
   */
  ready: boolean
  series: readonly {
    venue: string
    interval_seconds: number
    /**
     * Open of the first bar known, epoch seconds.
     */
    first: number | null
    /**
     * Open of the last bar known, epoch seconds.
     */
    last: number | null
  }[]
}
export type CoveredSymbols = {
  /**
   * A word for the past these bars tell: another word, another past.
   */
  origin: string
  symbols: readonly {
    symbol: string
    name: string
    aliases: readonly string[]
    session: '24x7' | 'us_equity'
    /**
     * Smallest price step, null where unknown.
     */
    tick: number | null
    /**
     * Seconds of the bars stored, finest first; multiples are made of them.
     */
    intervals: readonly number[]
  }[]
}
/**
 * The regime at one minute, with the numbers behind it.
 */
export type Snapshot = {
  /**
   * Close of the last bar used. Nothing later went in.
   */
  as_of: string
  /**
   * The market it speaks of.
   */
  symbol: string
  /**
   * Whether the next hour is expected to be less or more volatile than the boundary. Not a direction.
   */
  regime: 'STABLE' | 'VOLATILE'
  /**
   * Probability that the label is right for the next hour; calibrated, and graded in /v1/stats.
   */
  confidence: number
  /**
   * Multiply an ordinary position by this to hold its risk steady. 1 is ordinary.
   */
  position_scalar: number
  /**
   * Volatility forecast for the next hour, a fraction a year.
   */
  forecast_vol: number
  /**
   * What counts as volatile: the 0.65 quantile of the last 180 days' hourly volatility, a fraction a year.
   */
  boundary_vol: number
  /**
   * Volatility of the last hour, a fraction a year. Null where the data were interrupted within it.
   */
  realized_vol_1h: number | null
  /**
   * How far ahead the label looks.
   */
  horizon_minutes: 60
  /**
   * When the label last changed.
   */
  since: string
  /**
   * Days a year in every volatility here.
   */
  annualisation: 365
  /**
   * One-minute bars the model looked back on, at most 180 days of them.
   */
  bars_used: number
  /**
   * Age of the last bar when this was answered. Beyond 300 the route answers 503 and charges nothing.
   */
  data_age_seconds: number
  /**
   * Name and version. A snapshot is never recomputed under the same name.
   */
  model: string
  /**
   * Only on the free sample: how old its view is by design.
   */
  delayed_by_seconds?: number
}
export type RegimeHistoryQuery = {
  start?: Moment
  end?: Moment
  /**
   * Most snapshots in one answer; one a minute.
   */
  limit: number
}
/**
 * Snapshots oldest first.
 */
export type RegimeHistory = {
  symbol: string
  /**
   * First moment asked for.
   */
  start: string
  /**
   * Moment before which snapshots were asked for.
   */
  end: string
  /**
   * Snapshots in this answer.
   */
  count: number
  /**
   * `start` of the next page; null on the last.
   */
  next_start: string | null
  snapshots: readonly RegimeHistoryItem[]
}
/**
 * One snapshot of the history.
 */
export type RegimeHistoryItem = {
  /**
   * Close of the last bar used. Nothing later went in.
   */
  as_of: string
  /**
   * The market it speaks of.
   */
  symbol: string
  /**
   * Whether the next hour is expected to be less or more volatile than the boundary. Not a direction.
   */
  regime: 'STABLE' | 'VOLATILE'
  /**
   * Probability that the label is right for the next hour; calibrated, and graded in /v1/stats.
   */
  confidence: number
  /**
   * Multiply an ordinary position by this to hold its risk steady. 1 is ordinary.
   */
  position_scalar: number
}
export type HomeQuery = {
  /**
   * Code of a mistake to explain.
   */
  err: string
}
export type PricingQuery = {
  /**
   * 1 after a sign-up: the page says thank you.
   */
  ok: number
}

declare module '#gateway' {
  interface Plugins extends Products {}
}
