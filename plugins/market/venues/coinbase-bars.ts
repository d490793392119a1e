import { CLOSED, createColumns } from '../bars.ts'
import { requestBook, requestRows, type Venue, type VenueOptions } from './bar-venue.ts'

/**
 * Coinbase Exchange. One request returns 300 minutes, newest first, as rows `[time, low, high, open, close, volume]` with
 * times in seconds; both ends are inclusive. Minutes without a trade are missing.
 *
 * Source: Coinbase Exchange REST API, "Get product candles" and "Get product book".
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
      const rows = (await requestRows('coinbase', address, options, signal)).map((row) => row.map(Number))
      const out = createColumns(rows.length + 1)
      for (const [time, low, high, open, close, volume] of rows.toSorted((a, b) => a[0]! - b[0]!))
        if (time! >= from && time! < to) out.add(time!, open!, high!, low!, close!, volume!, CLOSED)
      return out.end()
    },
    book(symbol, signal) {
      // Level 2 is the whole book, aggregated by price.
      const address = new URL(`${options.url}/products/${encodeURIComponent(symbol)}/book?level=2`)
      return requestBook('coinbase', address, options, signal)
    },
  }
}
