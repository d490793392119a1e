import { CLOSED, createColumns } from '../bars.ts'
import { getRows, type Venue, type VenueOptions } from './venue.ts'

/**
 * Coinbase Exchange: 300 minutes a request, newest first, rows `[time, low, high, open, close, volume]` in seconds, both
 * ends inclusive. Minutes without a trade are left out.
 *
 * Source: Coinbase Exchange REST API, "Get product candles".
 */
export function createCoinbase(options: VenueOptions): Venue {
  return {
    name: 'coinbase',
    windowMinutes: 300,
    async minutes(symbol, from, to, signal) {
      const address = new URL(`${options.url}/products/${encodeURIComponent(symbol)}/candles`)
      address.searchParams.set('granularity', '60')
      address.searchParams.set('start', new Date(from * 1000).toISOString())
      address.searchParams.set('end', new Date((to - 60) * 1000).toISOString())
      const rows = (await getRows('coinbase', address, options, signal)).map((row) => row.map(Number))
      const out = createColumns(rows.length + 1)
      for (const [time, low, high, open, close, volume] of rows.toSorted((a, b) => a[0]! - b[0]!))
        if (time! >= from && time! < to) out.add(time!, open!, high!, low!, close!, volume!, CLOSED)
      return out.end()
    },
  }
}
