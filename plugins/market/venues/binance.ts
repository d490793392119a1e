import { CLOSED, createColumns } from '../bars.ts'
import { getRows, type Venue, type VenueOptions } from './venue.ts'

/**
 * Binance spot market data: 1,000 minutes a request, oldest first, rows `[open time in ms, open, high, low, close,
 * volume, …]` with numbers as strings. Quiet minutes are written out with no volume.
 *
 * Source: Binance Spot API, "Kline/candlestick data".
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
      const rows = await getRows('binance', address, options, signal)
      const out = createColumns(rows.length + 1)
      for (const row of rows) {
        const [ms, open, high, low, close, volume] = row.slice(0, 6).map(Number)
        const time = Math.floor(ms! / 1000)
        if (time >= from && time < to) out.add(time, open!, high!, low!, close!, volume!, CLOSED)
      }
      return out.end()
    },
  }
}
