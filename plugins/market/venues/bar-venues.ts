/** The venues that bars and order books are read from. To add one, write its file in this folder and list it here. */
import { createBinance } from './binance-bars.ts'
import { createBitfinex } from './bitfinex-bars.ts'
import { createBitstamp } from './bitstamp-bars.ts'
import { createCoinbase } from './coinbase-bars.ts'
import { createKraken } from './kraken-bars.ts'
import type { Venue, VenueOptions } from './bar-venue.ts'

export type VenueName = 'coinbase' | 'binance' | 'kraken' | 'bitstamp' | 'bitfinex'

export interface ListedVenue {
  readonly create: (options: VenueOptions) => Venue
  /** Base address of the public API, unless the settings name another. */
  readonly url: string
  /** Requests per second during back-fill, unless the settings state another number. */
  readonly per_second: number
  /** False for a venue that only has the last hours. */
  readonly keepsYears: boolean
}

/** Every venue by name. */
export const VENUES: Readonly<Record<VenueName, ListedVenue>> = {
  coinbase: { create: createCoinbase, url: 'https://api.exchange.coinbase.com', per_second: 4, keepsYears: true },
  binance: { create: createBinance, url: 'https://data-api.binance.vision', per_second: 2, keepsYears: true },
  kraken: { create: createKraken, url: 'https://api.kraken.com', per_second: 1, keepsYears: false },
  bitstamp: { create: createBitstamp, url: 'https://www.bitstamp.net', per_second: 4, keepsYears: true },
  // Thirty requests a minute.
  bitfinex: { create: createBitfinex, url: 'https://api-pub.bitfinex.com', per_second: 0.4, keepsYears: true },
}

/** The bit of each venue where venues are stored as a number. Only ever add to the end. */
export const VENUE_BITS: readonly VenueName[] = ['coinbase', 'binance', 'kraken', 'bitstamp', 'bitfinex']
