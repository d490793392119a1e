/** Funding rates as the venues report them, and the checks that every rate must pass. */
import { rateOver } from './rate-arithmetic.ts'

export type VenueName = 'binance' | 'bybit' | 'okx' | 'hyperliquid' | 'dydx' | 'kraken' | 'gate' | 'bitmex'

export interface FundingRate {
  /** The venue's own name of the contract. */
  readonly instrument: string
  /** The underlying, with the same name at every venue: "BTC" for XBT, "PEPE" for 1000PEPE. */
  readonly symbol: string
  readonly quote: string
  readonly settle: string
  readonly contract: 'linear' | 'inverse' | 'quanto'
  /** Fraction per interval as a decimal, with the digits of the venue. */
  readonly rate: string
  readonly intervalHours: number
  /**
   * Where the interval comes from: a field of the payload (venue), the published schedule of a venue without such a
   * field (published), or the gaps between settlements (inferred).
   */
  readonly intervalSource: 'venue' | 'published' | 'inferred'
  /** The expected rate of the next settlement, or the rate of the last one. */
  readonly kind: 'predicted' | 'settled'
  /** Rate of the following interval, if the venue reports it. */
  readonly predictedRate: string | null
  /** Epoch seconds. */
  readonly nextFunding: number | null
  readonly markPrice: number | null
  readonly indexPrice: number | null
  /** When the venue reported or settled the rate; epoch seconds. */
  readonly observed: number
}

export interface Excluded {
  readonly instrument: string
  /** The rate that the venue reported; null if it reported none. */
  readonly rate: string | null
  readonly reason: string
}

/** The rates of one poll of one venue. */
export interface Poll {
  readonly rates: readonly FundingRate[]
  /** Rates that cannot be true. */
  readonly quarantined: readonly Excluded[]
  /** Perpetuals without a rate or an interval. */
  readonly untold: readonly Excluded[]
}

/** What is known of a venue at a time. */
export interface VenueState {
  readonly venue: VenueName
  /** False if the operator switched the venue off. */
  readonly enabled: boolean
  /** The last answer, and when it arrived; epoch seconds. */
  readonly poll: Poll | null
  readonly fetched: number | null
  /** Why the last attempt failed; null if it succeeded. */
  readonly error: string | null
  /** In replay mode: seconds added to the recorded times. */
  readonly shiftSeconds?: number
}

/** Where rates come from. Sample, replay and online implement it alike. */
export interface RateSource {
  /** The state of every venue as known at `asOf`, epoch seconds. */
  at(asOf: number): Promise<readonly VenueState[]>
}

/** A rate above 5% in eight hours is an error of the feed: the venues cap their rates below that. */
const HIGHEST_8H = 0.05
const LONGEST_HOURS = 24
/** The clocks of venues may differ from ours by this much. */
const SLACK_SECONDS = 300

/** Returns why a rate cannot be true, or null. */
export function impossible(rate: FundingRate): string | null {
  const { intervalHours, nextFunding, observed } = rate
  if (!(intervalHours > 0 && intervalHours <= LONGEST_HOURS)) return `an interval of ${intervalHours} hours`
  const eight = rateOver(Number(rate.rate), intervalHours, 8)
  if (!(Math.abs(eight) <= HIGHEST_8H)) return `${(eight * 100).toPrecision(3)}% in eight hours`
  if (nextFunding !== null && nextFunding > observed + intervalHours * 3600 + SLACK_SECONDS)
    return `the next funding is further away than the interval of ${intervalHours} hours`
  return null
}

/** Separates plausible rates from impossible ones. Of an instrument that is listed twice the first rate counts. */
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
