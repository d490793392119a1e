/** /pricing.json, and the tool get_pricing (interface 2.8). */
import type { Catalog } from '../plugin/catalog.ts'
import { priced } from './listing.ts'
import type { Place } from './parts.ts'
import { CURRENCY, networkList } from './paying.ts'

export interface PriceList {
  readonly currency: 'USDC'
  readonly network: string
  readonly pay_to: string
  /** All networks, where payments are taken on several. */
  readonly networks?: readonly object[]
  /** "METHOD path" with * for parameters → US dollars. */
  readonly prices_usd: Readonly<Record<string, number>>
  readonly version: string
}

/** The price list. 5000n at "GET /v1/a" gives `{"GET /v1/a": 0.005}`. */
export function priceList(catalog: Catalog, place: Place): PriceList {
  const { network, payTo } = place
  const prices = priced(catalog).map(({ displayRoute, price }) => [displayRoute, Number(price) / 1e6] as const)
  return {
    currency: CURRENCY,
    network: network.name,
    pay_to: payTo,
    ...networkList(place),
    prices_usd: Object.fromEntries(prices),
    version: catalog.version,
  }
}
