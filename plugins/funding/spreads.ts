/**
 * Finds the largest difference of annual rates between two venues for each symbol. Two contracts with one name may be on two
 * coins, so their prices must agree; and a difference in a contract that nobody trades is worth nothing, so each spread says
 * what is traded.
 */
import type { FundingSpread } from '../../schemas/types.d.ts'
import { median } from '../lib/quant/rolling-median.ts'
import { roundBps, roundWritten } from '../lib/quant/rounding.ts'
import { aprOf, rateOver } from './rate-arithmetic.ts'
import type { FundingRate, VenueName } from './funding-rate.ts'
import { isDollar } from './contract-names.ts'
import { agrees, coinPrice, type VenueRate } from './price-agreement.ts'

const CONTRACTS = ['linear', 'quanto', 'inverse']
const QUOTES = ['USDT', 'USD', 'USDC']

/** Chooses the contract that represents a venue: linear before inverse, then by the most traded quote. */
function preference({ contract, quote }: Pick<FundingRate, 'contract' | 'quote'>): number {
  const place = QUOTES.indexOf(quote)
  return CONTRACTS.indexOf(contract) * 10 + (place < 0 ? QUOTES.length : place)
}

/** The contract that represents a venue in the spreads of each of these symbols. */
export function representatives<Rate extends FundingRate>(
  rates: readonly Rate[],
  symbols: ReadonlySet<string>,
): Rate[] {
  const chosen = new Map<string, Rate>()
  for (const rate of rates) {
    const other = chosen.get(rate.symbol)
    if (!symbols.has(rate.symbol) || !isDollar(rate.quote)) continue
    if (!other || preference(rate) < preference(other)) chosen.set(rate.symbol, rate)
  }
  return [...chosen.values()]
}

const apr = ({ rate, intervalHours }: FundingRate): number => aprOf(Number(rate), intervalHours)

/**
 * The contracts whose prices agree with the median of all. Those without a price are kept: nothing speaks against them. Of
 * two prices that differ, nobody can tell which is right, so neither is kept.
 */
function ofOneCoin(rates: readonly VenueRate[]): VenueRate[] {
  const prices = rates.map(coinPrice).filter((price) => price !== null)
  if (prices.length < 2) return [...rates]
  const middle = median(prices)
  return rates.filter((rate) => {
    const price = coinPrice(rate)
    return price === null || agrees(price, middle)
  })
}

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
    const all = [...venues.values()]
    const same = ofOneCoin(all)
    if (same.length < 2) continue
    const sorted = same.toSorted((a, b) => apr(a) - apr(b) || a.venue.localeCompare(b.venue))
    const [long, short] = [sorted[0]!, sorted.at(-1)!]
    const spread = roundWritten(apr(short) - apr(long))
    const [longPrice, shortPrice] = [coinPrice(long), coinPrice(short)]
    const gap = longPrice === null || shortPrice === null ? null : (shortPrice / longPrice - 1) * 1e4
    const volumes = [long.volumeUsd ?? null, short.volumeUsd ?? null]
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
      median_rate_8h: roundWritten(
        median(sorted.map(({ rate, intervalHours }) => rateOver(Number(rate), intervalHours, 8))),
      ),
      apart_seconds: Math.round(Math.abs(long.observed - short.observed)),
      prices_checked: gap !== null,
      price_gap_bps: gap === null ? null : roundBps(gap),
      volume_24h_usd: volumes.every((volume) => volume !== null) ? Math.min(...volumes) : null,
      tradable: null,
      price_mismatches: all
        .filter((rate) => !same.includes(rate))
        .map((rate) => ({ venue: rate.venue, instrument: rate.instrument, price: coinPrice(rate)! })),
    })
  }
  return spreads.toSorted((a, b) => b.spread_apr - a.spread_apr || a.symbol.localeCompare(b.symbol))
}
