/** /v1/prices/history: every change of a price, with the old one, the new one and the time. */
import type { Call } from '../plugin/plugin.ts'
import type { Prices } from '../payments/price-history.ts'
import { CURRENCY } from './paying.ts'

export interface HistoryInput {
  readonly query: { readonly limit: number; readonly route?: string }
}

/** The changes, newest first. A price of null: not sold; 0: free. 5000n is 0.005. */
export async function priceHistory({ catalog, input }: Call<HistoryInput>, prices: Pick<Prices, 'history'>) {
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
