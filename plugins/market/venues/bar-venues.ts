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
  /** Where venues are stored as a number, this bit is the venue's. Never change one: give a new venue the next. */
  readonly bit: number
}

/** Every venue by name. */
export const VENUES: Readonly<Record<VenueName, ListedVenue>> = {
  coinbase: {
    create: createCoinbase,
    url: 'https://api.exchange.coinbase.com',
    per_second: 4,
    keepsYears: true,
    bit: 0,
  },
  binance: {
    create: (options) => createBinance('binance', options),
    url: 'https://data-api.binance.vision',
    per_second: 2,
    keepsYears: true,
    bit: 1,
  },
  binance_us: {
    create: (options) => createBinance('binance_us', options),
    url: 'https://api.binance.us',
    per_second: 2,
    keepsYears: true,
    bit: 5,
  },
  kraken: { create: createKraken, url: 'https://api.kraken.com', per_second: 1, keepsYears: false, bit: 2 },
  bitstamp: { create: createBitstamp, url: 'https://www.bitstamp.net', per_second: 4, keepsYears: true, bit: 3 },
  // Thirty requests a minute. All symbols are due at the same moment, once a minute.
  bitfinex: {
    create: createBitfinex,
    url: 'https://api-pub.bitfinex.com',
    per_second: 0.4,
    burst: 5,
    keepsYears: true,
    bit: 4,
  },
}

/** The venue of each bit. */
export const VENUES_BY_BIT: readonly VenueName[] = (Object.keys(VENUES) as VenueName[]).toSorted(
  (one, other) => VENUES[one].bit - VENUES[other].bit,
)
