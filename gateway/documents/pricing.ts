/** /pricing.json and the tool get_pricing (docs/interface.md, section 2.8), and /v1/prices/history. */
import type { Catalog } from '../plugin/catalog.ts'
import type { PriceHistory } from '../payments/price-history.ts'
import type { Call } from '../plugin/plugin.ts'
import { freshRoutes, priced } from './listed-operations.ts'
import type { DocumentContext } from './document.ts'
import { CURRENCY, networkList } from './how-to-pay.ts'

export interface PriceList {
  readonly currency: 'USDC'
  readonly network: string
  readonly pay_to: string
  /** All networks, if payments are accepted on more than one. */
  readonly networks?: readonly object[]
  /** "METHOD path" with * for parameters → US dollars. */
  readonly prices_usd: Readonly<Record<string, number>>
  /** Freshness that a route needs to be sold, for routes that promise it. */
  readonly fresh: Readonly<Record<string, object>>
  readonly version: string
}

/** Returns the price list. A price of 5000n at "GET /v1/a" gives `{"GET /v1/a": 0.005}`. */
export function priceList(catalog: Catalog, context: DocumentContext): PriceList {
  const { network, payTo } = context
  const prices = priced(catalog).map(({ displayRoute, price }) => [displayRoute, Number(price) / 1e6] as const)
  return {
    currency: CURRENCY,
    network: network.name,
    pay_to: payTo,
    ...networkList(context),
    prices_usd: Object.fromEntries(prices),
    fresh: freshRoutes(catalog),
    version: catalog.version,
  }
}

export interface HistoryInput {
  readonly query: { readonly limit: number; readonly route?: string }
}

/** Returns the price changes, newest first. A price of null means not sold, 0 means free, and 5000n is 0.005. */
export async function priceHistory({ catalog, input }: Call<HistoryInput>, prices: Pick<PriceHistory, 'history'>) {
  const changes = await prices.history(input.query)
  return {
    currency: CURRENCY,
    version: catalog.version,
    changes: changes.map(({ operation, route, before, after, at, version }) => ({
      operation,
      route,
      old_price_usd: usd(before),
      new_price_usd: usd(after),
      changed_at: at.toISOString(),
      catalog_version: version,
    })),
  }
}

const usd = (amount: bigint | null): number | null => (amount === null ? null : Number(amount) / 1e6)
