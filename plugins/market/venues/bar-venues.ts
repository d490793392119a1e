/** The venues that bars and order books are read from. To add one, write its file in this folder and list it here. */
import { createBinance } from './binance-bars.ts'
import { createBitfinex } from './bitfinex-bars.ts'
import { createBitstamp } from './bitstamp-bars.ts'
import { createCoinbase } from './coinbase-bars.ts'
import { createKraken } from './kraken-bars.ts'
import type { Venue, VenueOptions } from './bar-venue.ts'

export type VenueName = 'coinbase' | 'binance' | 'binance_us' | 'kraken' | 'bitstamp' | 'bitfinex'

export interface ListedVenue {
  readonly create: (options: VenueOptions) => Venue
  /** Base address of the public API, unless the settings name another. */
  readonly url: string
  /** Requests per second, unless the settings state another number. */
  readonly per_second: number
  /** Requests that may follow each other at once. Default: 1. */
  readonly burst?: number
  /** False for a venue that only has the last hours. */
  readonly keepsYears: boolean
}

/** Every venue by name. */
export const VENUES: Readonly<Record<VenueName, ListedVenue>> = {
  coinbase: { create: createCoinbase, url: 'https://api.exchange.coinbase.com', per_second: 4, keepsYears: true },
  binance: {
    create: (options) => createBinance('binance', options),
    url: 'https://data-api.binance.vision',
    per_second: 2,
    keepsYears: true,
  },
  binance_us: {
    create: (options) => createBinance('binance_us', options),
    url: 'https://api.binance.us',
    per_second: 2,
    keepsYears: true,
  },
  kraken: { create: createKraken, url: 'https://api.kraken.com', per_second: 1, keepsYears: false },
  bitstamp: { create: createBitstamp, url: 'https://www.bitstamp.net', per_second: 4, keepsYears: true },
  // Thirty requests a minute. All symbols are due at the same moment, once a minute.
  bitfinex: {
    create: createBitfinex,
    url: 'https://api-pub.bitfinex.com',
    per_second: 0.4,
    burst: 5,
    keepsYears: true,
  },
}

/** The bit of each venue where venues are stored as a number. Only ever add to the end. */
export const VENUE_BITS: readonly VenueName[] = ['coinbase', 'binance', 'kraken', 'bitstamp', 'bitfinex', 'binance_us']
