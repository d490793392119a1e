import { LEVELS, listedRows, requestBook, requestMinutes, type Venue, type VenueOptions } from './bar-venue.ts'

const ROW = { time: 0, open: 1, high: 2, low: 3, close: 4, volume: 5, unitsPerSecond: 1000 } as const

/**
 * Binance spot market data, and that of Binance.US, which has the same API and also quotes in dollars. One request returns
 * 1,000 minutes, oldest first, as rows `[open time in ms, open, high, low, close, volume, …]` with numbers as strings. Minutes
 * without a trade are included, with a volume of zero. An unknown symbol is answered 400.
 *
 * Source: Binance Spot API, "Kline/candlestick data" and "Order book".
 */
export function createBinance(name: 'binance' | 'binance_us', options: VenueOptions): Venue {
  return {
    name,
    windowMinutes: 1000,
    historyMinutes: Infinity,
    minutes(symbol, from, to, signal) {
      const url = new URL(`${options.url}/api/v3/klines`)
      url.searchParams.set('symbol', symbol)
      url.searchParams.set('interval', '1m')
      url.searchParams.set('startTime', String(from * 1000))
      url.searchParams.set('endTime', String(to * 1000 - 1))
      url.searchParams.set('limit', '1000')
      const rows = (body: unknown) => listedRows(body, ROW)
      return requestMinutes({ name, url, from, to, rows }, options, signal)
    },
    book(symbol, signal) {
      // Weight 25 at 500 levels.
      const url = new URL(`${options.url}/api/v3/depth?symbol=${encodeURIComponent(symbol)}&limit=${LEVELS}`)
      return requestBook({ name, url }, options, signal)
    },
  }
}
