/**
 * Compares what venues say one coin costs. Two contracts of one name may be on two coins, and a venue may state wrong
 * prices. Both show in the prices, which differ little between venues.
 */
import { median } from '../lib/quant/rolling-median.ts'
import { isDollar, lotOf } from './contract-names.ts'
import type { Excluded, FundingRate, VenueName } from './funding-rate.ts'

export interface VenueRate extends FundingRate {
  readonly venue: VenueName
  /** In replay mode: seconds added to its time. Rates with different shifts did not exist at the same time. */
  readonly shift: number
}

/** `agrees`, `differs`, or `unchecked`: it has no price in dollars, or no other venue has one. */
export type PriceCheck = 'agrees' | 'differs' | 'unchecked'

/** Prices of one coin differ by less from their median, unless its contracts are being squeezed. */
const SAME_COIN = 0.05
/** A squeezed contract may trade this far from the others. Beyond, it is on another coin or another number of coins. */
const ANOTHER_COIN = 0.25
/** If the prices of a venue as a whole are further than this from those of the others, the venue is wrong. */
const WRONG_VENUE = 0.02
/** Of two prices that differ, nobody can tell which is right. */
const FEWEST_VENUES = 3
/** Coins to compare before a whole venue is judged wrong. */
const FEWEST_COINS = 3

/** Price of one coin: the mark price, or else the index price, of a contract; null if the venue reports neither. */
export function coinPrice({ markPrice, indexPrice, instrument }: FundingRate): number | null {
  const price = markPrice ?? indexPrice
  return price === null ? null : Number((price / lotOf(instrument)).toPrecision(10))
}

/** True if the higher of two prices is at most `tolerance` (a fraction; default: 0.05) above the lower one. */
export function agrees(price: number, other: number, tolerance = SAME_COIN): boolean {
  return Math.max(price, other) / Math.min(price, other) - 1 <= tolerance
}

/** A contract that is left out because its price is not that of its coin. */
export interface OtherPrice extends Excluded {
  readonly venue: VenueName
}

export interface PriceAgreement {
  readonly rates: readonly VenueRate[]
  readonly checkOf: (rate: VenueRate) => PriceCheck
  /** Contracts whose price cannot be that of their coin. */
  readonly others: readonly OtherPrice[]
  /** Venues whose prices are wrong as a whole, with the reason. None of their rates is left. */
  readonly wrong: ReadonlyMap<VenueName, string>
}

/**
 * Leaves out the venues whose prices are wrong as a whole, then the contracts whose price is not that of their coin. Both need
 * three venues. What is left is compared with the median: a price more than 5% away from it `differs`.
 */
export function agreeOnPrices(all: readonly VenueRate[]): PriceAgreement {
  const wrong = wrongVenues(all)
  const left = all.filter(({ venue }) => !wrong.has(venue))
  const prices = pricesByCoin(left)
  const checks = new Map<VenueRate, PriceCheck>()
  const others: OtherPrice[] = []
  const rates = left.filter((rate) => {
    const [price, known] = [coinPrice(rate), prices.get(coinOf(rate))]
    if (price === null || !isDollar(rate.quote) || known === undefined || known.size < 2) return true
    const middle = median([...known.values()])
    checks.set(rate, agrees(price, middle) ? 'agrees' : 'differs')
    if (known.size < FEWEST_VENUES || agrees(price, middle, ANOTHER_COIN)) return true
    const reason = `its price of ${price} is not that of ${rate.symbol}, which is ${middle} at the median of ${known.size} venues`
    others.push({ venue: rate.venue, instrument: rate.instrument, rate: rate.rate, reason })
    return false
  })
  return { rates, checkOf: (rate) => checks.get(rate) ?? 'unchecked', others, wrong }
}

/** Contracts on one coin at one time. */
const coinOf = ({ symbol, shift }: VenueRate): string => `${symbol} ${shift}`

/** What each venue says a coin costs: the median of its contracts in dollars. */
function pricesByCoin(rates: readonly VenueRate[]): ReadonlyMap<string, ReadonlyMap<VenueName, number>> {
  const listed = new Map<string, Map<VenueName, number[]>>()
  for (const rate of rates) {
    const price = coinPrice(rate)
    if (price === null || !isDollar(rate.quote)) continue
    const venues = listed.get(coinOf(rate)) ?? new Map<VenueName, number[]>()
    listed.set(coinOf(rate), venues.set(rate.venue, [...(venues.get(rate.venue) ?? []), price]))
  }
  return new Map(
    [...listed].map(([coin, venues]) => [coin, new Map([...venues].map(([venue, own]) => [venue, median(own)]))]),
  )
}

/**
 * Venues whose prices are more than 2% away from the median of all at the median of their coins. A coin that is squeezed or
 * has two meanings does not move that.
 */
function wrongVenues(rates: readonly VenueRate[]): ReadonlyMap<VenueName, string> {
  const away = new Map<VenueName, number[]>()
  for (const prices of pricesByCoin(rates).values()) {
    if (prices.size < FEWEST_VENUES) continue
    const middle = median([...prices.values()])
    for (const [venue, price] of prices) away.set(venue, [...(away.get(venue) ?? []), price / middle - 1])
  }
  const wrong = new Map<VenueName, string>()
  for (const [venue, shares] of away) {
    const share = median(shares)
    if (shares.length < FEWEST_COINS || Math.abs(share) <= WRONG_VENUE) continue
    const percent = `${Number((Math.abs(share) * 100).toPrecision(3))}%`
    wrong.set(venue, `its prices are ${percent} ${share > 0 ? 'above' : 'below'} those of the other venues`)
  }
  return wrong
}
