/** Builds the answer of the product: current rates, spreads between venues, and the state of each venue. */
import { InvalidInput, readCursor, Reply, Unavailable, writeCursor, type DataMode } from 'tollgate/plugin'
import type { FundingQuery, FundingRateItem, FundingRates, FundingSpread, FundingVenue } from '../../schemas/types.d.ts'
import { formatSeconds } from '../lib/time/timestamps.ts'
import { aprOf, apyOf, carryOf, rateOver } from './rate-arithmetic.ts'
import { type CurrentRates, readCurrentRates } from './current-rates.ts'
import { isAtBound, type VenueName, type RateSource } from './funding-rate.ts'
import type { PriceCheck, VenueRate } from './price-agreement.ts'
import type { PerpetualBooks } from './perpetual-books.ts'
import { spreadsOf } from './spreads.ts'
import { withTradableSize } from './tradable-size.ts'
import { underlyingOf } from './contract-names.ts'
import { VENUES } from './venues/funding-venues.ts'

const MOST_QUARANTINED = 50

/**
 * The answer to a query: one page of current rates, the spreads (first page only), and the state of every venue. A page without
 * a rate is marked empty. Throws Unavailable if no venue has a current rate, and InvalidInput for an unknown venue or the cursor of another query.
 */
export async function answerFundingRates(
  { source, books }: { readonly source: RateSource; readonly books: PerpetualBooks },
  { query, asOf: now, dataMode }: { query: FundingQuery; asOf: Date; dataMode: DataMode },
): Promise<Reply<FundingRates>> {
  const place = query.cursor === undefined ? null : readCursor(query.cursor, query)
  const asOf = Math.min(now.getTime() / 1000, place?.asOf ?? Infinity)
  const wanted = filterOf(query)
  const known = await readCurrentRates(source, asOf)
  const current = known.rates
  if (current.length === 0) throw new Unavailable('No venue has a current rate. Nothing was charged; try again.', 30)

  const found = current.filter(wanted.rate).toSorted(orderOf(query.sort))
  const start = place === null ? 0 : found.findIndex((rate) => after(keyOf(rate, query.sort), place.key, query.sort))
  const page = start < 0 ? [] : found.slice(start, start + query.limit)
  const last = page.at(-1)
  const more = last !== undefined && start + page.length < found.length
  const answer: FundingRates = {
    as_of: formatSeconds(asOf),
    data_mode: dataMode,
    count: page.length,
    total: found.length,
    next_cursor: more ? writeCursor({ asOf, key: keyOf(last, query.sort) }, query) : null,
    rates: page.map((rate) => itemOf(rate, known.checkOf(rate), asOf)),
    spreads: place === null ? await spreadsFor(query, current, books, asOf) : [],
    ...healthOf(known, asOf, wanted.excluded),
  }
  return new Reply(answer, { empty: page.length === 0 })
}

/** The spreads of a query with what can be traded at them, widest first. */
async function spreadsFor(
  query: FundingQuery,
  current: readonly VenueRate[],
  books: PerpetualBooks,
  asOf: number,
): Promise<FundingSpread[]> {
  const { slippage_bps: slippageBps, min_size_usd: least = 0 } = query
  const found = spreadsOf(current).filter(filterOf(query).spread)
  const sized = await Promise.all(found.map((spread) => withTradableSize(spread, books, { asOf, slippageBps })))
  return sized.filter(({ tradable }) => least === 0 || (tradable?.size_usd ?? 0) >= least).slice(0, query.limit)
}

/** The filters of a query. */
function filterOf({ symbol, venue, min_abs_apr = 0, min_volume_usd = 0 }: FundingQuery) {
  const symbols = new Set(symbolsIn(symbol))
  const venues = new Set(venuesIn(venue))
  const ofSymbol = (name: string): boolean => symbols.size === 0 || symbols.has(name)
  const ofVenue = (name: string): boolean => venues.size === 0 || venues.has(name)
  return {
    rate: (rate: VenueRate) =>
      ofSymbol(rate.symbol) &&
      ofVenue(rate.venue) &&
      Math.abs(aprOf(Number(rate.rate), rate.intervalHours)) >= min_abs_apr,
    spread: (spread: FundingSpread) =>
      ofSymbol(spread.symbol) &&
      (ofVenue(spread.long_venue) || ofVenue(spread.short_venue)) &&
      (min_volume_usd === 0 || (spread.volume_24h_usd ?? 0) >= min_volume_usd),
    excluded: ofVenue,
  }
}

const wordsIn = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)

/** The symbols of a query by their common names. A contract, such as BTC/USDT:USDT or BTCUSDT.P, stands for its underlying. */
export const symbolsIn = (text: string | undefined): string[] => wordsIn(text).map(underlyingOf)

/** The venues of a query. Throws InvalidInput for one that is not read. */
export function venuesIn(text: string | undefined): string[] {
  const venues = wordsIn(text).map((name) => name.toLowerCase())
  for (const name of venues)
    if (!(name in VENUES)) {
      const msg = `is not a venue here: ${Object.keys(VENUES).join(', ')}`
      throw new InvalidInput([{ loc: ['query', 'venue'], msg, type: 'enum', input: name }])
    }
  return venues
}

type Sort = FundingQuery['sort']
type Key = (string | number)[]

function keyOf(rate: VenueRate, sort: Sort): Key {
  const name = [rate.symbol, rate.venue, rate.instrument]
  return sort === 'symbol' ? name : [aprOf(Number(rate.rate), rate.intervalHours), ...name]
}

function compare(a: readonly (string | number)[], b: readonly (string | number)[], sort: Sort): number {
  for (let i = 0; i < a.length; i += 1) {
    const [one, other] = [a[i]!, b[i]!]
    if (one === other) continue
    const sign = one < other ? -1 : 1
    return i === 0 && sort === '-apr' ? -sign : sign
  }
  return 0
}

const orderOf = (sort: Sort) => (a: VenueRate, b: VenueRate) => compare(keyOf(a, sort), keyOf(b, sort), sort)
const after = (key: Key, place: readonly (string | number)[], sort: Sort): boolean => compare(key, place, sort) > 0

/** The next settlement after `asOf`: the reported one, moved on by whole intervals. */
function nextAfter({ nextFunding, intervalHours }: VenueRate, asOf: number): number | null {
  if (nextFunding === null || nextFunding > asOf) return nextFunding
  const interval = intervalHours * 3600
  return nextFunding + (Math.floor((asOf - nextFunding) / interval) + 1) * interval
}

/** A rate as the API shows it. */
export function itemOf(reported: VenueRate, priceCheck: PriceCheck, asOf: number): FundingRateItem {
  const { intervalHours: hours, predictedRate } = reported
  const next = nextAfter(reported, asOf)
  const rate = Number(reported.rate)
  return {
    symbol: reported.symbol,
    venue: reported.venue,
    instrument: reported.instrument,
    quote: reported.quote,
    settle: reported.settle,
    contract: reported.contract,
    rate,
    rate_decimal: reported.rate,
    interval_hours: hours,
    interval_source: reported.intervalSource,
    rate_1h: rateOver(rate, hours, 1),
    rate_8h: rateOver(rate, hours, 8),
    apr: aprOf(rate, hours),
    apy: apyOf(rate, hours),
    carry_bps_day: carryOf(rate, hours),
    kind: reported.kind,
    predicted_rate: predictedRate === null ? null : Number(predictedRate),
    next_funding: next === null ? null : formatSeconds(next),
    mark_price: reported.markPrice,
    index_price: reported.indexPrice,
    price_check: priceCheck,
    rate_floor: boundOf(reported.floor),
    rate_cap: boundOf(reported.cap),
    bounds_source: (reported.floor ?? reported.cap ?? null) === null ? null : (reported.boundsSource ?? null),
    at_bound: isAtBound(reported),
    volume_24h_usd: reported.volumeUsd ?? null,
    open_interest_usd: reported.openInterestUsd ?? null,
    observed_at: formatSeconds(reported.observed),
    age_seconds: Math.floor(asOf - reported.observed),
  }
}

const boundOf = (bound: string | null | undefined): number | null => (typeof bound === 'string' ? Number(bound) : null)

/** The state of every venue, read or not, with what was left out of its rates. */
function healthOf(
  { venues: reports, others }: CurrentRates,
  asOf: number,
  ofVenue: (name: VenueName) => boolean,
): Pick<FundingRates, 'venues' | 'unavailable' | 'quarantined'> {
  const excluded = reports.flatMap(({ venue, poll }) => [
    ...(poll?.quarantined ?? []).map((value) => ({ venue, ...value })),
    ...others.filter((other) => other.venue === venue),
  ])
  const venues = reports.map(({ venue, status, poll, fetched, problem, rates, shiftSeconds }): FundingVenue => {
    return {
      venue,
      status,
      fetched_at: fetched === null ? null : formatSeconds(fetched),
      age_seconds: fetched === null ? null : Math.max(0, Math.floor(asOf - fetched)),
      rates,
      quarantined: excluded.filter((one) => one.venue === venue).length,
      untold: poll?.untold.length ?? 0,
      error: problem,
      ...(shiftSeconds === undefined || fetched === null
        ? {}
        : { replay: { shift_seconds: shiftSeconds, recorded_at: formatSeconds(fetched - shiftSeconds) } }),
    }
  })
  return {
    venues,
    unavailable: venues
      .filter(({ status }) => status === 'unavailable')
      .map(({ venue, error, age_seconds }) => ({
        venue,
        reason: error ?? 'its last rates are too old',
        age_seconds,
      })),
    quarantined: excluded
      .filter(({ venue }) => ofVenue(venue))
      .slice(0, MOST_QUARANTINED)
      .map(({ venue, instrument, rate, reason }) => ({ venue, instrument, rate_decimal: rate, reason })),
  }
}
