import { isRow, rowOf } from '../../lib/feeds/payloads.ts'
import { numberOf, type SentBar } from '../../lib/feeds/bar-rows.ts'
import { requestBook, requestMinutes, type Venue, type VenueOptions } from './bar-venue.ts'

/**
 * Bitstamp. One request returns 1,000 minutes, oldest first, as `{"data":{"pair":"BTC/USD","ohlc":[{"timestamp":"…",
 * "open":"…","high":"…","low":"…","close":"…","volume":"…"}]}}` with times in seconds. Both ends are inclusive. An unknown
 * symbol is answered 404.
 *
 * Source: Bitstamp HTTP API, "OHLC data" and "Order book".
 */
export function createBitstamp(options: VenueOptions): Venue {
  return {
    name: 'bitstamp',
    windowMinutes: 1000,
    historyMinutes: Infinity,
    minutes(symbol, from, to, signal) {
      const url = new URL(`${options.url}/api/v2/ohlc/${encodeURIComponent(symbol)}/`)
      url.searchParams.set('step', '60')
      url.searchParams.set('limit', String(Math.min(1000, (to - from) / 60)))
      url.searchParams.set('start', String(from))
      url.searchParams.set('end', String(to - 60))
      return requestMinutes({ name: 'bitstamp', url, from, to, rows }, options, signal)
    },
    book(symbol, signal) {
      const url = new URL(`${options.url}/api/v2/order_book/${encodeURIComponent(symbol)}/`)
      return requestBook({ name: 'bitstamp', url }, options, signal)
    },
  }
}

function rows(body: unknown): readonly SentBar[] | null {
  const { ohlc } = rowOf(rowOf(body)['data'])
  if (!Array.isArray(ohlc)) return null
  return ohlc.map((row: unknown) => {
    const { timestamp, open, high, low, close, volume } = isRow(row) ? row : {}
    return { time: numberOf(timestamp), open, high, low, close, volume, row }
  })
}
