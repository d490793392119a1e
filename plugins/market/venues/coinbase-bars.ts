import { listOf, rowOf } from '../../lib/feeds/payloads.ts'
import { LEVELS, listedRows, requestBook, requestMinutes, type Venue, type VenueOptions } from './bar-venue.ts'

const ROW = { time: 0, low: 1, high: 2, open: 3, close: 4, volume: 5, unitsPerSecond: 1 } as const

/**
 * Coinbase Exchange. One request returns 300 minutes, newest first, as rows `[time, low, high, open, close, volume]` with
 * times in seconds; both ends are inclusive. Minutes without a trade are missing. An unknown symbol is answered 404.
 *
 * The Exchange API has the best prices or the whole book, tens of thousands of levels. Advanced Trade, at `bookUrl`, has the
 * same book with a limit.
 *
 * Source: Coinbase Exchange REST API, "Get product candles" and "Get product book"; Coinbase Advanced Trade API, "Get
 * Public Product Book".
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
      const code = encodeURIComponent(symbol)
      const { url, bookUrl } = options
      if (bookUrl === undefined)
        return requestBook({ name: 'coinbase', url: new URL(`${url}/products/${code}/book?level=2`) }, options, signal)
      const limited = new URL(`${bookUrl}/api/v3/brokerage/market/product_book?product_id=${code}&limit=${LEVELS}`)
      return requestBook({ name: 'coinbase', url: limited, sides }, options, signal)
    },
  }
}

/** The levels of Advanced Trade are `{"price":"…","size":"…"}`. */
function sides(body: unknown): unknown {
  const { bids, asks } = rowOf(rowOf(body)['pricebook'])
  const side = (levels: unknown) => listOf(levels).map((level) => [rowOf(level)['price'], rowOf(level)['size']])
  return { bids: side(bids), asks: side(asks) }
}
