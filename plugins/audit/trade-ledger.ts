/** The trade ledger that the checks and statistics use, whatever layout the file had. */

export type Layout =
  'round_trips' | 'fills' | 'tradingview' | 'backtesting.py' | 'vectorbt' | 'freqtrade' | 'lean_trades' | 'lean_orders'

export type Leg = 'entry' | 'exit'

/** One execution. Times are epoch milliseconds. If the file names no zone, its times are read as UTC. */
export interface Fill {
  /** 0-based data row. */
  readonly row: number
  readonly leg: Leg
  /** Index into the ledger's symbols. */
  readonly symbol: number
  /** 1 for a buy, -1 for a sale. */
  readonly sign: 1 | -1
  readonly time: number
  readonly price: number
  /** Positive; NaN if the file has no quantity. */
  readonly qty: number
}

/** One round trip. */
export interface Trade {
  /** Data row of the entry, and of the exit. They differ if the layout has a row for each. */
  readonly row: number
  readonly exitRow: number
  readonly symbol: number
  /** 1 long, -1 short. */
  readonly sign: 1 | -1
  readonly qty: number
  readonly entryTime: number
  readonly entryPrice: number
  readonly exitTime: number
  readonly exitPrice: number
  /** Money paid for both sides; NaN if not reported. */
  readonly fees: number
  /** Profit as stated in the file; NaN if not stated. */
  readonly pnl: number
  /** Index into the ledger's trials; 0 without a trial column. */
  readonly trial: number
}

export interface TradeLedger {
  readonly layout: Layout
  /** Data rows of the file. */
  readonly rows: number
  readonly trades: readonly Trade[]
  readonly fills: readonly Fill[]
  readonly symbols: readonly string[]
  readonly trials: readonly string[]
  /** Rows excluded from the statistics by a structural finding. */
  readonly excluded: number
  /** Trades that are still open. They are not in `trades`. */
  readonly open: number
  /** Orders that were never filled. */
  readonly unfilled: number
  /** Whether the times name their zone. */
  readonly zoned: boolean
  /** Whether every time is a bare date or midnight. */
  readonly daily: boolean
  readonly hasQty: boolean
  readonly warnings: readonly string[]
}

/** Milliseconds. */
export const DAY = 86_400_000
export const YEAR = 365.25 * DAY
/** The symbol of a ledger that names none. */
export const UNNAMED_SYMBOL = ''

/** The UTC day of epoch milliseconds, as "2024-01-02". */
export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)
