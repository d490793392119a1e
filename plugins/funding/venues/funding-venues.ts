/** The venues that funding rates are read from. To add one, write its file in this folder and list it here. */
import type { VenueName } from '../funding-rate.ts'
import { binance } from './binance.ts'
import { bitmex } from './bitmex.ts'
import { bybit } from './bybit.ts'
import { dydx } from './dydx.ts'
import { gate } from './gate.ts'
import { hyperliquid } from './hyperliquid.ts'
import { kraken } from './kraken.ts'
import { okx } from './okx.ts'
import type { Venue } from './funding-venue.ts'

/** Every venue by name. Answers list the venues in this order. */
export const VENUES: Readonly<Record<VenueName, Venue>> = {
  binance,
  bybit,
  okx,
  hyperliquid,
  dydx,
  kraken,
  gate,
  bitmex,
}
