import { rateOver } from './rate-arithmetic.ts'

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

/** What is known of a venue at a moment. */
export interface VenueState {
  readonly venue: VenueName
  /** False where the operator switched it off. */
  readonly enabled: boolean
  /** The last answer, and when it was known; epoch seconds. */
  readonly poll: Poll | null
  readonly fetched: number | null
  /** Why the last attempt failed; null where it did not. */
  readonly error: string | null
  /** Replay: what was added to the recorded times. */
  readonly shiftSeconds?: number
}

/** Where the rates come from: sample, replay and online look the same from here. */
export interface RateSource {
  /** All venues as they were known at `asOf`, epoch seconds. */
  at(asOf: number): Promise<readonly VenueState[]>
}

/** Above 5% in eight hours a rate is a fault of the feed: the venues cap theirs below that. */
const HIGHEST_8H = 0.05
const LONGEST_HOURS = 24
/** Clocks of venues may differ from ours by this much. */
const SLACK_SECONDS = 300

/** Why a rate cannot be true, or null. */
export function impossible(rate: FundingRate): string | null {
  const { intervalHours, nextFunding, observed } = rate
  if (!(intervalHours > 0 && intervalHours <= LONGEST_HOURS)) return `an interval of ${intervalHours} hours`
  const eight = rateOver(Number(rate.rate), intervalHours, 8)
  if (!(Math.abs(eight) <= HIGHEST_8H)) return `${(eight * 100).toPrecision(3)}% in eight hours`
  if (nextFunding !== null && nextFunding > observed + intervalHours * 3600 + SLACK_SECONDS)
    return `the next funding is further away than the interval of ${intervalHours} hours`
  return null
}

/** Parts rates that can be true from those that cannot; of an instrument told twice the first counts. */
export function quarantine(rates: readonly FundingRate[]): { rates: FundingRate[]; quarantined: Excluded[] } {
  const kept = new Map<string, FundingRate>()
  const quarantined: Excluded[] = []
  for (const rate of rates) {
    const reason = kept.has(rate.instrument) ? 'told twice' : impossible(rate)
    if (reason === null) kept.set(rate.instrument, rate)
    else quarantined.push({ instrument: rate.instrument, rate: rate.rate, reason })
  }
  return { rates: [...kept.values()], quarantined }
}
