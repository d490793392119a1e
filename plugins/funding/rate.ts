/** A funding rate as one venue tells it, and what came with it in one poll. */
export type VenueName = 'binance' | 'bybit' | 'okx' | 'hyperliquid' | 'dydx' | 'kraken' | 'gate' | 'bitmex'

export interface FundingRate {
  /** The venue's own name of the contract. */
  readonly instrument: string
  /** What it is a bet on, the same word at every venue: "BTC" for XBT, "PEPE" for 1000PEPE. */
  readonly symbol: string
  readonly quote: string
  readonly settle: string
  readonly contract: 'linear' | 'inverse' | 'quanto'
  /** Fraction per interval, digit for digit. */
  readonly rate: string
  readonly intervalHours: number
  /**
   * Who says so: a field of the payload, the venue's published schedule where its payload has no such field, or the
   * settlements themselves.
   */
  readonly intervalSource: 'venue' | 'published' | 'inferred'
  /** What the next settlement will be, or what the last one was. */
  readonly kind: 'predicted' | 'settled'
  /** Rate of the interval after, where the venue tells it. */
  readonly predictedRate: string | null
  /** Epoch seconds. */
  readonly nextFunding: number | null
  readonly markPrice: number | null
  readonly indexPrice: number | null
  /** Epoch seconds: when the venue said so, or settled. */
  readonly observed: number
}

export interface Excluded {
  readonly instrument: string
  /** What the venue said, null where it said nothing. */
  readonly rate: string | null
  readonly reason: string
}

/** One venue's answer. */
export interface Poll {
  readonly rates: readonly FundingRate[]
  /** Values that cannot be true. */
  readonly quarantined: readonly Excluded[]
  /** Perpetuals whose rate or interval the venue does not tell. */
  readonly untold: readonly Excluded[]
}
