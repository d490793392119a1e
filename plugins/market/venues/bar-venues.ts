/** The venues that bars and order books are read from. To add one, write its file in this folder and list it here. */
import { createBinance } from './binance-bars.ts'
import { createCoinbase } from './coinbase-bars.ts'
import type { Venue, VenueOptions } from './bar-venue.ts'

export type VenueName = 'coinbase' | 'binance'

export interface ListedVenue {
  readonly create: (options: VenueOptions) => Venue
  /** Base address of the public API, unless the settings name another. */
  readonly url: string
  /** Requests per second during back-fill, unless the settings state another number. */
  readonly per_second: number
}

/** Every venue by name. */
export const VENUES: Readonly<Record<VenueName, ListedVenue>> = {
  coinbase: { create: createCoinbase, url: 'https://api.exchange.coinbase.com', per_second: 4 },
  binance: { create: createBinance, url: 'https://data-api.binance.vision', per_second: 2 },
}
