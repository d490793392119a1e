import { listedRows, requestBook, requestMinutes, type Venue, type VenueOptions } from './bar-venue.ts'

const ROW = { time: 0, low: 1, high: 2, open: 3, close: 4, volume: 5, unitsPerSecond: 1 } as const

/**
 * Coinbase Exchange. One request returns 300 minutes, newest first, as rows `[time, low, high, open, close, volume]` with
 * times in seconds; both ends are inclusive. Minutes without a trade are missing. An unknown symbol is answered 404.
 *
 * Source: Coinbase Exchange REST API, "Get product candles" and "Get product book".
 */
export function createCoinbase(options: VenueOptions): Venue {
  return {
    name: 'coinbase',
    windowMinutes: 300,
    historyMinutes: Infinity,
    minutes(symbol, from, to, signal) {
      const url = new URL(`${options.url}/products/${encodeURIComponent(symbol)}/candles`)
      url.searchParams.set('granularity', '60')
      url.searchParams.set('start', new Date(from * 1000).toISOString())
      url.searchParams.set('end', new Date((to - 60) * 1000).toISOString())
      const rows = (body: unknown) => listedRows(body, ROW)
      return requestMinutes({ name: 'coinbase', url, from, to, rows }, options, signal)
    },
    book(symbol, signal) {
      // Level 2 is the whole book, aggregated by price.
      const address = new URL(`${options.url}/products/${encodeURIComponent(symbol)}/book?level=2`)
      return requestBook('coinbase', address, options, signal)
    },
  }
}
