/** Finds the largest difference of annual rates between two venues for each symbol. */
import type { FundingSpread } from '../../schemas/types.d.ts'
import { median } from '../lib/quant/rolling-median.ts'
import { aprOf, rateOver } from './rate-arithmetic.ts'
import type { FundingRate, VenueName } from './funding-rate.ts'
import { isDollar } from './contract-names.ts'

export interface VenueRate extends FundingRate {
  readonly venue: VenueName
  /** In replay mode: seconds added to its time. Rates with different shifts did not exist at the same time. */
  readonly shift: number
}

const CONTRACTS = ['linear', 'quanto', 'inverse']
const QUOTES = ['USDT', 'USD', 'USDC']

/** Chooses the contract that represents a venue: linear before inverse, then by the most traded quote. */
function preference({ contract, quote }: FundingRate): number {
  const place = QUOTES.indexOf(quote)
  return CONTRACTS.indexOf(contract) * 10 + (place < 0 ? QUOTES.length : place)
}

const apr = ({ rate, intervalHours }: FundingRate): number => aprOf(Number(rate), intervalHours)

/**
 * One spread for each symbol with rates of at least two venues at the same time: long at the lowest annual rate, short
 * at the highest. Largest first.
 */
export function spreadsOf(rates: readonly VenueRate[]): FundingSpread[] {
  const groups = new Map<string, Map<VenueName, VenueRate>>()
  for (const rate of rates) {
    if (!isDollar(rate.quote)) continue
    const group = `${rate.symbol} ${rate.shift}`
    const venues = groups.get(group) ?? new Map<VenueName, VenueRate>()
    const other = venues.get(rate.venue)
    if (!other || preference(rate) < preference(other)) venues.set(rate.venue, rate)
    groups.set(group, venues)
  }
  const spreads: FundingSpread[] = []
  for (const venues of groups.values()) {
    if (venues.size < 2) continue
    const sorted = [...venues.values()].toSorted((a, b) => apr(a) - apr(b) || a.venue.localeCompare(b.venue))
    const [long, short] = [sorted[0]!, sorted.at(-1)!]
    const spread = Number((apr(short) - apr(long)).toPrecision(12))
    spreads.push({
      symbol: long.symbol,
      long_venue: long.venue,
      short_venue: short.venue,
      spread_apr: spread,
      spread_8h: rateOver(spread, 8760, 8),
      long_instrument: long.instrument,
      short_instrument: short.instrument,
      long_apr: apr(long),
      short_apr: apr(short),
      venues: sorted.length,
      median_rate_8h: median(sorted.map(({ rate, intervalHours }) => rateOver(Number(rate), intervalHours, 8))),
      apart_seconds: Math.round(Math.abs(long.observed - short.observed)),
    })
  }
  return spreads.toSorted((a, b) => b.spread_apr - a.spread_apr || a.symbol.localeCompare(b.symbol))
}
