/** A trade ledger as the checks and the statistics see it, whatever layout it came in. */

export const LAYOUTS = [
  'round_trips',
  'fills',
  'tradingview',
  'backtesting.py',
  'vectorbt',
  'freqtrade',
  'lean_trades',
  'lean_orders',
] as const
export type Layout = (typeof LAYOUTS)[number]

export type Leg = 'entry' | 'exit'

/** One execution. Times are epoch milliseconds; without a zone in the file they are the written clock taken as UTC. */
export interface Fill {
  /** 0-based data row. */
  readonly row: number
  readonly leg: Leg
  /** Index into the ledger's symbols. */
  readonly symbol: number
  /** 1 buys, -1 sells. */
  readonly sign: 1 | -1
  readonly time: number
  readonly price: number
  /** Positive; NaN where the file has no quantity. */
  readonly qty: number
}

/** One round trip. */
export interface Trade {
  /** Data row of the entry, and of the exit where the layout gives it one of its own. */
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
  /** Money paid for both sides; NaN where not reported. */
  readonly fees: number
  /** Profit as the file states it; NaN where it does not. */
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
  /** Rows that a structural finding took out of the statistics. */
  readonly excluded: number
  /** Trades still open, left out. */
  readonly open: number
  /** Orders that were never filled, left out. */
  readonly unfilled: number
  /** Whether the times name their zone. */
  readonly zoned: boolean
  /** Every time is a bare date, or midnight. */
  readonly daily: boolean
  readonly hasQty: boolean
  readonly warnings: readonly string[]
}

export const DAY = 86_400_000
export const UNNAMED_SYMBOL = ''

/** "2024-01-02" of epoch milliseconds, read as UTC. */
export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)
