/** The trade ledger that the checks and statistics use, whatever layout the file had. */
import type { Reading } from './reading.ts'

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
  /** Index into the ledger's trials. */
  readonly trial: number
  /** 1 for a buy, -1 for a sale. */
  readonly sign: 1 | -1
  readonly time: number
  readonly price: number
  /** Positive; NaN if the file has no quantity. */
  readonly qty: number
  /** Money paid for this execution, negative for a rebate; NaN if not reported. */
  readonly fee: number
}

/** One round trip of a position, from flat to flat, in one symbol and one trial. */
export interface Trade {
  /** Data row of the entry, and of the exit. They differ if the layout has a row for each. */
  readonly row: number
  readonly exitRow: number
  readonly symbol: number
  /** 1 long, -1 short. */
  readonly sign: 1 | -1
  /** Quantity entered, in the units of the file; NaN if the file has none. */
  readonly qty: number
  /** Time of the first entry and of the last exit. */
  readonly entryTime: number
  readonly exitTime: number
  /** Mean prices of the entries and of the exits, weighted by quantity. */
  readonly entryPrice: number
  readonly exitPrice: number
  /** Money paid for both sides, negative for a rebate; NaN if not reported. A fee in kind counts at the exit price. */
  readonly fees: number
  /** Profit as stated in the file; NaN if not stated. */
  readonly pnl: number
  /** Index into the ledger's trials; 0 without a trial column. */
  readonly trial: number
}

/** What is known of a symbol. */
export interface Instrument {
  /** As the file names it; UNNAMED_SYMBOL if it names none. */
  readonly name: string
  /** Money for a move of 1 in the price of one unit of quantity: 100,000 for a lot of EURUSD, 2 for MNQ, 100 for an option. */
  readonly contractSize: number
  readonly contractSizeSource: 'stated' | 'file' | 'inferred' | 'assumed'
  /** The currency of its prices and profits; null if unknown. */
  readonly currency: string | null
  /** How the profits that the file states follow from its prices; null if it states none. */
  readonly profits: ProfitModel | null
}

/** How stated profits follow from prices, quantities and fees. */
export interface ProfitModel {
  /** Whether they are before or after the reported fees; null if that makes no difference, or the rows disagree. */
  readonly basis: 'gross' | 'net' | null
  /** Whether the move is divided by the exit price, as in an account in the base currency: USDJPY in USD. */
  readonly isInverse: boolean
  /** The size of a contract; for an inverse one before the division by the price. */
  readonly size: number
  /** Money that a stated profit may differ by beyond a hundredth, for a quantity of 1. */
  readonly tolerance: number
  /** Why the stated profits cannot be verified; null if they can. */
  readonly unverified: string | null
}

/** Fees in a currency that the file gives no price of. */
export interface UnknownFee {
  readonly currency: string
  /** Index into the ledger's trials. */
  readonly trial: number
  readonly amount: number
}

/** An open position before its last price is known. */
export type UnmarkedPosition = Omit<Trade, 'exitRow' | 'exitTime' | 'exitPrice' | 'pnl'>

/** A position that the file leaves open. */
export interface OpenPosition extends UnmarkedPosition {
  /** The last price of the symbol in the file, and its time. */
  readonly lastPrice: number
  readonly lastTime: number
}

/**
 * What is left of a position after its last exit, at the price of that exit: less than a lot, or than 1 % of its largest size.
 * It is not a trade.
 */
export type Remainder = Omit<Fill, 'leg' | 'time' | 'fee'>

export interface TradeLedger {
  readonly layout: Layout
  /** How the file was read: each column, what was assumed, and what was skipped. */
  readonly reading: Reading
  /** Data rows of the file. */
  readonly rows: number
  readonly trades: readonly Trade[]
  readonly fills: readonly Fill[]
  readonly symbols: readonly string[]
  /** By the index of the symbol. */
  readonly instruments: readonly Instrument[]
  readonly trials: readonly string[]
  /** Rows excluded from the statistics by a structural finding. */
  readonly excluded: number
  /** Trades that are still open. They are not in `trades`. */
  readonly open: number
  /** The open positions of which the file states symbol, side, price and time. */
  readonly openPositions: readonly OpenPosition[]
  readonly remainders: readonly Remainder[]
  /** Fees that are in no amount. */
  readonly unknownFees: readonly UnknownFee[]
  /** Money in the account at the start: from the request, or from a balance column; null if unknown. */
  readonly capital: number | null
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
