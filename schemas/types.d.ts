/**
 * Made by scripts/types.ts from catalog/ and schemas/. Do not edit: run `npm run types`.
 * The shapes have their names from the $defs; Plugins gets the input and output of every handler.
 */

/**
 * Any spelling; case, dash, slash and underscore do not matter.
 */
export type MarketSymbol = string
/**
 * Bars to examine: an object with `bars`, a table of `columns` and `rows`, or a bare array of bars. 3 to 50,000 bars, in the order you hold them; order and duplicates are part of what is checked.
 *
 * @minItems 3
 * @maxItems 50000
 */
export type BarQualityRequest =
  | {
      /**
       * Comes back in the report; nothing is looked up.
       */
      symbol?: string
      /**
       * Length of a bar: seconds, or 1m, 15m, 1h, 1d, 1w, 1mo. Inferred from the timestamps when absent.
       */
      interval?: string | number
      /**
       * IANA name of the wall clock that timestamps without an offset are on, and that sessions keep. Default: UTC for timestamps; sessions are looked for in UTC and New York.
       */
      timezone?: string
      /**
       * When the market is open. us_equity knows the holidays and early closes of the NYSE; weekdays is any other market that rests at weekends; auto infers it from the timestamps.
       */
      session: 'auto' | 'us_equity' | '24x7' | 'weekdays'
      /**
       * True for rates and spreads, which may be zero or below. Checks on ratios of prices are then left out where such a price occurs.
       */
      allow_negative: boolean
      /**
       * The bars: an array of bars, or a table of columns and rows.
       *
       * @minItems 3
       * @maxItems 50000
       */
      bars?:
        | readonly SubmittedBar[]
        | {
            columns?: BarColumns
            rows?: BarRows
          }
      columns?: BarColumns
      rows?: BarRows
    }
  | readonly SubmittedBar[]
/**
 * One bar: an object {t,o,h,l,c,v} or {timestamp,open,high,low,close,volume}, or an array [t,o,h,l,c,v]. The timestamp is the bar's open: ISO 8601, epoch seconds, or milliseconds (above 1e11). Prices may be text; null or NaN is a missing value and is reported. Volume may be left out.
 */
export type SubmittedBar = {} | readonly unknown[]
/**
 * Names of the columns of rows, e.g. ["timestamp","open","high","low","close","volume"]; others are left out.
 *
 * @minItems 5
 * @maxItems 64
 */
export type BarColumns = readonly string[]
/**
 * One array per bar, its values in the order of columns.
 *
 * @minItems 3
 * @maxItems 50000
 */
export type BarRows = readonly (readonly unknown[])[]
/**
 * Bars to examine: an object with `bars`, a table of `columns` and `rows`, or a bare array of bars. 3 to 50,000 bars, in the order you hold them; order and duplicates are part of what is checked.
 *
 * @minItems 3
 * @maxItems 50000
 */
export type AskedBarQualityRequest =
  | {
      /**
       * Comes back in the report; nothing is looked up.
       */
      symbol?: string
      /**
       * Length of a bar: seconds, or 1m, 15m, 1h, 1d, 1w, 1mo. Inferred from the timestamps when absent.
       */
      interval?: string | number
      /**
       * IANA name of the wall clock that timestamps without an offset are on, and that sessions keep. Default: UTC for timestamps; sessions are looked for in UTC and New York.
       */
      timezone?: string
      /**
       * When the market is open. us_equity knows the holidays and early closes of the NYSE; weekdays is any other market that rests at weekends; auto infers it from the timestamps.
       */
      session?: 'auto' | 'us_equity' | '24x7' | 'weekdays'
      /**
       * True for rates and spreads, which may be zero or below. Checks on ratios of prices are then left out where such a price occurs.
       */
      allow_negative?: boolean
      /**
       * The bars: an array of bars, or a table of columns and rows.
       *
       * @minItems 3
       * @maxItems 50000
       */
      bars?:
        | readonly SubmittedBar[]
        | {
            columns?: BarColumns
            rows?: BarRows
          }
      columns?: BarColumns
      rows?: BarRows
    }
  | readonly SubmittedBar[]
/**
 * What is wrong; /methodology has the rule of each.
 */
export type FindingCode =
  | 'missing_value'
  | 'nonpositive_price'
  | 'high_lt_low'
  | 'open_outside_range'
  | 'close_outside_range'
  | 'negative_volume'
  | 'duplicate_timestamp'
  | 'out_of_order_timestamp'
  | 'off_grid_timestamp'
  | 'gap'
  | 'bad_print_high'
  | 'bad_print_low'
  | 'bad_print_close'
  | 'decimal_shift'
  | 'stale_run'
  | 'volume_outlier'
  | 'zero_volume_move'
  | 'unadjusted_split'
  | 'possible_dividend'
  | 'series_discontinuity'
  | 'closed_session_bar'
  | 'clock_shift'
  | 'off_tick'
export type FindingFamily = 'impossible' | 'timestamp' | 'bad_print' | 'stale' | 'volume' | 'split' | 'session' | 'tick'
/**
 * error: wrong, repair or drop it; warning: probably wrong, look at it; info: worth knowing.
 */
export type FindingSeverity = 'error' | 'warning' | 'info'
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
      asked: {
        params: Readonly<Record<string, unknown>>
        query: AskedBarsQuery
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
  qc: {
    checkBarQuality: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: Readonly<Record<string, unknown>>
        body: BarQualityRequest
      }
      asked: {
        params: Readonly<Record<string, unknown>>
        query: Readonly<Record<string, unknown>>
        body: AskedBarQualityRequest
      }
      output: BarQualityReport
    }
    getBarQualityMethod: {
      input: {
        params: Readonly<Record<string, unknown>>
        query: Readonly<Record<string, unknown>>
        body: undefined
      }
      output: Method
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
      asked: {
        params: Readonly<Record<string, unknown>>
        query: AskedRegimeHistoryQuery
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
      asked: {
        params: Readonly<Record<string, unknown>>
        query: AskedHomeQuery
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
      asked: {
        params: Readonly<Record<string, unknown>>
        query: AskedPricingQuery
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
export type AskedBarsQuery = {
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
  interval?: number
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
export type BarQualityReport = {
  /**
   * As sent.
   */
  symbol: string | null
  /**
   * Rows examined.
   */
  bars: number
  /**
   * As sent, or inferred.
   */
  interval_seconds: number
  /**
   * As sent, or inferred.
   */
  session: 'us_equity' | '24x7' | 'weekdays'
  /**
   * Earliest timestamp.
   */
  first: string
  /**
   * Latest timestamp.
   */
  last: string
  /**
   * 1 - min(1, 100 × (errors + 0.3 × warnings) / bars).
   */
  score: number
  /**
   * A from 0.95, B from 0.85, C from 0.7, D from 0.5.
   */
  grade: 'A' | 'B' | 'C' | 'D' | 'F'
  /**
   * False with a split, a discontinuity, or errors on more than 0.1% of the bars.
   */
  usable: boolean
  /**
   * Findings by severity, complete.
   */
  counts: {
    error: number
    warning: number
    info: number
  }
  /**
   * Findings by code, complete.
   */
  by_code: {
    [k: string]: number
  }
  /**
   * In order of rows; the worst 1,000 where there are more.
   *
   * @maxItems 1000
   */
  findings: readonly BarFinding[]
  /**
   * True where not all findings are shown.
   */
  findings_truncated: boolean
  splits: readonly BarSplit[]
  coverage: {
    /**
     * Distinct bars plus those missing inside sessions.
     */
    expected_bars: number
    /**
     * Bars missing inside sessions.
     */
    missing: number
    /**
     * Longest hole inside a session.
     */
    longest_gap_seconds: number | null
  }
  /**
   * What the statistical checks of this file were decided by.
   */
  thresholds: {
    /**
     * Local scales a lone wick must exceed.
     */
    wick: number | null
    /**
     * Local scales a lone close must exceed.
     */
    close: number | null
    /**
     * Local scales a close must exceed that the next bar opens at.
     */
    carried_close: number | null
    /**
     * Log odds a split must exceed; 2 more without volume.
     */
    split_log_odds: number
    /**
     * Flat bars from which a run is stale.
     */
    stale_run_bars: number
    /**
     * Price step of 99.5% of the prices.
     */
    tick: number | null
  }
  /**
   * Families that could not be checked, and why.
   */
  not_checked: {
    [k: string]: string
  }
  /**
   * Name and version of the rules.
   */
  model: 'qc/1'
}
export type BarFinding = {
  code: FindingCode
  family: FindingFamily
  severity: FindingSeverity
  /**
   * Row as you sent it, from 0.
   */
  index: number
  /**
   * Of that row, UTC.
   */
  timestamp: string
  /**
   * The value concerned; bar for the whole row.
   */
  field: 'timestamp' | 'open' | 'high' | 'low' | 'close' | 'volume' | 'bar'
  /**
   * What the row says: a price, a volume, a time, or the length of a run. Null where it is missing.
   */
  observed: number | string | null
  /**
   * The value a repair would use. Null where the row should go or nothing better is known.
   */
  expected: number | string | null
  /**
   * How far out: local scales for bad prints, deviations for volume, bars for gaps, log odds for splits, steps or days elsewhere. Null where the rule is yes or no.
   */
  score: number | null
  /**
   * Probability that it is what the code says; for bad prints one over one plus the false alarms expected at that score.
   */
  confidence: number
  /**
   * One sentence with the numbers.
   */
  explanation: string
}
export type BarSplit = {
  /**
   * First bar at the new level.
   */
  timestamp: string
  /**
   * Its row.
   */
  index: number
  /**
   * New shares to old: 7:1, or 1:10 for a reverse split.
   */
  ratio: string
  /**
   * Divide earlier prices, and multiply earlier volumes, by it.
   */
  factor: number
  /**
   * Natural log of the odds of a split against a real jump.
   */
  log_odds: number
  /**
   * Bars before this one are the ones to adjust.
   */
  adjust_before: true
}
/**
 * How a product arrives at its answers, for the methodology page.
 */
export type Method = {
  /**
   * Name and version, as the answers carry it.
   */
  model: string
  paragraphs: readonly string[]
  formulas?: readonly {
    name: string
    /**
     * Plain text.
     */
    formula: string
    /**
     * Paper or standard.
     */
    source?: string
  }[]
  /**
   * Measured figures; the caption says on what data and over which days.
   */
  tables?: readonly {
    caption: string
    columns: readonly string[]
    rows: readonly (readonly (string | number | null)[])[]
  }[]
  /**
   * What it does not do.
   */
  limits?: readonly string[]
  sources?: readonly string[]
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
export type AskedRegimeHistoryQuery = {
  start?: Moment
  end?: Moment
  /**
   * Most snapshots in one answer; one a minute.
   */
  limit?: number
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
export type AskedHomeQuery = {
  /**
   * Code of a mistake to explain.
   */
  err?: string
}
export type PricingQuery = {
  /**
   * 1 after a sign-up: the page says thank you.
   */
  ok: number
}
export type AskedPricingQuery = {
  /**
   * 1 after a sign-up: the page says thank you.
   */
  ok?: number
}

declare module '#gateway' {
  interface Plugins extends Products {}
}
