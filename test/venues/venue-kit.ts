/**
 * Every public source that the products read, scripted: spot venues, venues for perpetual contracts, the sources of the
 * POTUS feeds, and listings of services. All of them share one clock, one market and one switchboard of faults.
 *
 * @example
 * const kit = await openVenueKit({ start: Date.UTC(2026, 2, 2, 12) })
 * kit.faults.start('rate_limited', { venue: 'coinbase', symbol: 'BTC-USD' })
 * kit.clock.advance(60)
 */
import sources from '../../plugins/potus/data/sources.json' with { type: 'json' }
import { createFaults, type Faults } from './faults.ts'
import { createFundingMarket, type FundingMarket, type PerpetualVenue } from './funding/funding-market.ts'
import { perpetualVenues } from './funding/perpetual-venues.ts'
import { publicFeeds, SOURCE_HOSTS } from './feeds/public-feeds.ts'
import { createNews, type ScriptedNews } from './feeds/scripted-news.ts'
import { LISTINGS, type ListingName, listingVenue, serviceListings } from './listings/service-listings.ts'
import { createMarket, type ScriptedMarket } from './scripted-market.ts'
import { openScriptedVenue, type ScriptedVenue, type ServedRequest } from './scripted-venue.ts'
import { binance, binanceUs } from './spot/binance.ts'
import { bitfinex } from './spot/bitfinex.ts'
import { bitstamp } from './spot/bitstamp.ts'
import { coinbase } from './spot/coinbase.ts'
import { kraken } from './spot/kraken.ts'
import { createVenueClock, type VenueClock } from './venue-clock.ts'

export const SPOT_VENUES = ['coinbase', 'binance', 'binance_us', 'kraken', 'bitstamp', 'bitfinex'] as const

/** The scripted venue of each venue of plugins/funding. */
const PERPETUAL_NAMES: Readonly<Record<PerpetualVenue, string>> = {
  binance: 'binance-futures',
  bybit: 'bybit',
  okx: 'okx',
  hyperliquid: 'hyperliquid',
  dydx: 'dydx',
  kraken: 'kraken-futures',
  gate: 'gate',
  bitmex: 'bitmex',
}

export interface VenueKit {
  readonly clock: VenueClock
  readonly market: ScriptedMarket
  readonly funding: FundingMarket
  readonly news: ScriptedNews
  readonly faults: Faults
  /** Address of a scripted venue by its name, without a trailing slash. Throws RangeError for an unknown name. */
  url(venue: string): string
  /** Every request so far, of all venues, in the order of their times. */
  requests(): readonly ServedRequest[]
  /** Addresses of the spot venues, for the settings of plugins/market. */
  readonly spotUrls: Readonly<Record<(typeof SPOT_VENUES)[number], string>>
  /** Addresses of the venues for perpetual contracts, for the settings of plugins/funding. */
  readonly perpetualUrls: Readonly<Record<PerpetualVenue, string>>
  /** Addresses of the listings of services, for the settings of plugins/directory. */
  readonly listingUrls: Readonly<Record<ListingName, string>>
  /** The address of each source of plugins/potus that is scripted, by the id of the source. */
  readonly sourceUrls: Readonly<Record<string, string>>
  close(): Promise<void>
}

export interface VenueKitOptions {
  /** What the clock shows at first, epoch milliseconds. Default: 12:00:30 UTC on 2 March 2026, a Monday. */
  readonly start?: number
  readonly seed?: string
  /** Before this, nobody has published anything, epoch milliseconds. Default: 36,000 posts and two years of releases. */
  readonly newsSince?: number
  /** How many times the real limits of requests the venues allow; without a limit by default. */
  readonly limits?: number
}

/** Starts all venues on free ports of loopback. */
export async function openVenueKit({
  start = Date.UTC(2026, 2, 2, 12, 0, 30),
  seed = 'tollgate',
  newsSince = 0,
  limits = Infinity,
}: VenueKitOptions = {}): Promise<VenueKit> {
  const clock = createVenueClock(start)
  const market = createMarket(seed)
  const funding = createFundingMarket(seed)
  const news = createNews(seed, newsSince)
  const faults = createFaults(() => clock.now())
  const scripts = [
    coinbase,
    binance,
    binanceUs,
    kraken,
    bitstamp,
    bitfinex,
    ...perpetualVenues(funding),
    ...publicFeeds(news),
    ...serviceListings,
  ]
  const open = await Promise.all(scripts.map((script) => openScriptedVenue(script, { market, clock, faults, limits })))
  const venues = new Map<string, ScriptedVenue>(open.map((venue) => [venue.name, venue]))
  const url = (name: string): string => {
    const venue = venues.get(name)
    if (!venue) throw new RangeError(`no venue ${name}; there are ${[...venues.keys()].join(', ')}`)
    return venue.url
  }
  const byName = <Name extends string>(names: Readonly<Record<Name, string>>): Readonly<Record<Name, string>> =>
    Object.fromEntries(Object.entries<string>(names).map(([name, venue]) => [name, url(venue)])) as Record<Name, string>
  return {
    clock,
    market,
    funding,
    news,
    faults,
    url,
    requests: () => open.flatMap((venue) => venue.requests).toSorted((a, b) => a.at - b.at),
    spotUrls: byName(
      Object.fromEntries(SPOT_VENUES.map((name) => [name, name])) as Record<(typeof SPOT_VENUES)[number], string>,
    ),
    perpetualUrls: byName(PERPETUAL_NAMES),
    sourceUrls: Object.fromEntries(
      sources.sources.flatMap((source) => {
        const host = SOURCE_HOSTS.find(([address]) => source.url.startsWith(address))
        // Settings take no brackets in an address.
        const path = (address: string): string =>
          source.url.slice(address.length).replaceAll('[', '%5B').replaceAll(']', '%5D')
        return host ? [[source.id, url(host[1]) + path(host[0])] as const] : []
      }),
    ),
    listingUrls: byName(
      Object.fromEntries(LISTINGS.map((name) => [name, listingVenue(name)])) as Record<ListingName, string>,
    ),
    close: async () => void (await Promise.all(open.map((venue) => venue.close()))),
  }
}
