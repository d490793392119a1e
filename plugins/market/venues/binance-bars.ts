import { CLOSED, createColumns } from '../bars.ts'
import { MAX_LEVELS, requestBook, requestRows, type Venue, type VenueOptions } from './bar-venue.ts'

/**
 * Binance spot market data. One request returns 1,000 minutes, oldest first, as rows `[open time in ms, open, high, low,
 * close, volume, …]` with numbers as strings. Minutes without a trade are included, with no volume.
 *
 * Source: Binance Spot API, "Kline/candlestick data" and "Order book".
 */
export function createBinance(options: VenueOptions): Venue {
  return {
    name: 'binance',
    windowMinutes: 1000,
    async minutes(symbol, from, to, signal) {
      const address = new URL(`${options.url}/api/v3/klines`)
      address.searchParams.set('symbol', symbol)
      address.searchParams.set('interval', '1m')
      address.searchParams.set('startTime', String(from * 1000))
      address.searchParams.set('endTime', String(to * 1000 - 1))
      address.searchParams.set('limit', '1000')
      const rows = await requestRows('binance', address, options, signal)
      const out = createColumns(rows.length + 1)
      for (const row of rows) {
        const [ms, open, high, low, close, volume] = row.slice(0, 6).map(Number)
        const time = Math.floor(ms! / 1000)
        if (time >= from && time < to) out.add(time, open!, high!, low!, close!, volume!, CLOSED)
      }
      return out.end()
    },
    book(symbol, signal) {
      // Weight 50 at 1,000 levels.
      const address = new URL(`${options.url}/api/v3/depth?symbol=${encodeURIComponent(symbol)}&limit=${MAX_LEVELS}`)
      return requestBook('binance', address, options, signal)
    },
  }
}
