/** The venues that bars and order books are read from. To add one, write its file in this folder and list it here. */
import { createBinance } from './binance.ts'
import { createCoinbase } from './coinbase.ts'
import type { Venue, VenueOptions } from './venue.ts'

export type VenueName = 'coinbase' | 'binance'

export interface ListedVenue {
  readonly create: (options: VenueOptions) => Venue
  /** Base address of the public API; the settings may name another. */
  readonly url: string
  /** Requests a second during back-fill, unless the settings say otherwise. */
  readonly per_second: number
}

export const VENUES: Readonly<Record<VenueName, ListedVenue>> = {
  coinbase: { create: createCoinbase, url: 'https://api.exchange.coinbase.com', per_second: 4 },
  binance: { create: createBinance, url: 'https://data-api.binance.vision', per_second: 2 },
}
