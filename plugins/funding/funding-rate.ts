/** Funding rates as the venues report them, and the checks that every rate must pass. */
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
  /** The lowest and the highest rate that the venue allows, fractions per interval; missing if it states none. */
  readonly floor?: string | null
  readonly cap?: string | null
  /** Where these come from: fields of the venue's answer, or its published rules. */
  readonly boundsSource?: 'venue' | 'published' | null
  /** What was traded in 24 hours, in dollars; missing if the venue does not say. */
  readonly volumeUsd?: number | null
  /** The value of all open contracts, in dollars. */
  readonly openInterestUsd?: number | null
  /** Coins in one contract, of venues whose order books count contracts; null if the venue does not say. */
  readonly contractSize?: number | null
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
  /** Perpetuals without a rate or an interval, or with figures that contradict each other. */
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

/**
 * Beyond the bounds of its venue, or without any, a number above a quarter of a position at once is no rate, but a percentage
 * taken for a fraction. The rates worth most are far beyond the usual ones (a squeezed contract pays 2% an hour for days), so
 * there is no tighter limit.
 */
const MOST_AT_ONCE = 0.25
/** Rates are rounded by venues, so a rate at its bound may be beyond it by this share. */
const ROUNDING = 1e-6
const LONGEST_HOURS = 24
/** The clocks of venues may differ from ours by this much. */
const SLACK_SECONDS = 300

/** Returns why a rate cannot be true, or null. */
export function impossible(rate: FundingRate): string | null {
  const { intervalHours, nextFunding, observed } = rate
  if (!(intervalHours > 0 && intervalHours <= LONGEST_HOURS)) return `an interval of ${intervalHours} hours`
  const value = Number(rate.rate)
  const percent = `${Number((value * 100).toPrecision(4))}%`
  // A settled rate is what was paid, whatever the bounds are by now. Published rules bound what is charged, and the venue may
  // expect more until then, so only bounds that it states with the rate speak against the rate.
  if (rate.kind === 'predicted' && rate.boundsSource === 'venue' && isBeyond(rate, value))
    return `${percent}, beyond the venue's own bounds of ${rate.floor ?? 'none'} and ${rate.cap ?? 'none'}`
  if (!(isWithin(rate, value) || Math.abs(value) <= MOST_AT_ONCE)) return `${percent} at one settlement`
  if (nextFunding !== null && nextFunding > observed + intervalHours * 3600 + SLACK_SECONDS)
    return `the next funding is further away than the interval of ${intervalHours} hours`
  return null
}

/** True if a rate is beyond the bounds of its venue. */
function isBeyond({ floor = null, cap = null }: FundingRate, value: number): boolean {
  const beyond = (bound: string | null, sign: 1 | -1): boolean =>
    bound !== null && sign * (value - Number(bound)) > ROUNDING * Math.abs(Number(bound))
  return beyond(floor, -1) || beyond(cap, 1)
}

/** True if its venue has a bound on the side of a rate, and the rate is not beyond. More than all of a position is no bound. */
function isWithin(rate: FundingRate, value: number): boolean {
  const bound = value < 0 ? rate.floor : rate.cap
  return bound != null && Math.abs(Number(bound)) <= 1 && !isBeyond(rate, value)
}

/** True if a rate is as low or as high as its venue allows, or beyond. The venue then charges less than the market would pay. */
export function isAtBound({ rate, floor = null, cap = null }: FundingRate): boolean {
  const value = Number(rate)
  const reaches = (bound: string | null, sign: 1 | -1): boolean =>
    bound !== null && Number(bound) !== 0 && sign * (value - Number(bound)) >= -ROUNDING * Math.abs(Number(bound))
  return reaches(floor, -1) || reaches(cap, 1)
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
