/**
 * Binance spot market data: klines oldest first with times in milliseconds and numbers as text, at most 1,000, quiet
 * minutes included; order books and best prices. Prices are in USDT, which is not quite a dollar. Binance.US has the same
 * API, and pairs in dollars.
 *
 * Source: Binance Spot API, "Kline/Candlestick data", "Order book", "Symbol order book ticker", "Limits".
 */
import { SYMBOLS } from '../scripted-market.ts'
import type { VenueRequest, VenueRoute, VenueScript } from '../scripted-venue.ts'
import type { VenueView } from '../venue-view.ts'

const MOST = 1000

type Quote = 'USDT' | 'USD'

const symbolIn =
  (quote: Quote) =>
  (_: unknown, { query }: VenueRequest): string | undefined => {
    const code = query.get('symbol') ?? ''
    const symbol = `${code.slice(0, -quote.length)}-USD`
    return code.endsWith(quote) && symbol in SYMBOLS && symbol !== 'USDT-USD' ? symbol : undefined
  }

/** Dollars of one unit of the quote currency. */
const dollars = (view: VenueView, quote: Quote): number => (quote === 'USD' ? 1 : view.price('USDT-USD'))

const klines = (quote: Quote): VenueRoute => ({
  name: 'candles',
  path: /^\/api\/v3\/klines$/,
  symbol: symbolIn(quote),
  weight: () => 2,
  answer({ query }, view, symbol) {
    if (query.get('interval') !== '1m') return refusal(-1120, 'Invalid interval.')
    const limit = Math.min(MOST, Number(query.get('limit') ?? 500))
    const endMs = Number(query.get('endTime') ?? view.now)
    const startMs = Number(query.get('startTime') ?? (Math.floor(endMs / 60_000) - limit + 1) * 60_000)
    const tether = new Map(view.bars('USDT-USD', startMs / 1000, endMs / 1000 + 1).map((bar) => [bar.time, bar.close]))
    const { digits } = SYMBOLS[symbol]!
    const rows = view
      .bars(symbol, startMs / 1000, Math.floor(endMs / 1000) + 1)
      .slice(0, limit)
      .map(({ time, open, high, low, close, volume, trades }) => {
        const rate = (quote === 'USDT' && tether.get(time)) || 1
        const price = (value: number): string => (value / rate).toFixed(digits)
        const quoted = (volume * close).toFixed(8)
        return [
          time * 1000,
          ...[open, high, low, close].map(price),
          volume.toFixed(8),
          time * 1000 + 59_999,
          quoted,
          trades,
          (volume / 2).toFixed(8),
          (Number(quoted) / 2).toFixed(8),
          '0',
        ]
      })
    return { rows, wrap: (list) => list }
  },
})

const depth = (quote: Quote): VenueRoute => ({
  name: 'book',
  path: /^\/api\/v3\/depth$/,
  symbol: symbolIn(quote),
  weight: ({ query }) => {
    const limit = Number(query.get('limit') ?? 100)
    return limit <= 100 ? 5 : limit <= 500 ? 25 : limit <= 1000 ? 50 : 250
  },
  answer({ query }, view, symbol) {
    const { bids, asks } = view.book(symbol, Math.min(120, Number(query.get('limit') ?? 100)))
    const { digits } = SYMBOLS[symbol]!
    const side = (levels: typeof bids) =>
      levels.map(([price, quantity]) => [(price / dollars(view, quote)).toFixed(digits), quantity.toFixed(8)])
    return {
      rows: side(bids),
      wrap: (rows) => ({
        lastUpdateId: Math.floor(view.now / 10),
        bids: rows,
        asks: rows.length === 0 ? [] : side(asks),
      }),
    }
  },
})

const bookTicker = (of: Quote): VenueRoute => ({
  name: 'ticker',
  path: /^\/api\/v3\/ticker\/bookTicker$/,
  symbol: symbolIn(of),
  weight: () => 2,
  answer({ query }, view, symbol) {
    const { bids, asks } = view.book(symbol, 1)
    const { digits } = SYMBOLS[symbol]!
    const quote = {
      symbol: query.get('symbol'),
      bidPrice: (bids[0]![0] / dollars(view, of)).toFixed(digits),
      bidQty: bids[0]![1].toFixed(8),
      askPrice: (asks[0]![0] / dollars(view, of)).toFixed(digits),
      askQty: asks[0]![1].toFixed(8),
    }
    return { rows: [quote], wrap: (rows) => rows[0] ?? {} }
  },
})

const script = (name: string, quote: Quote): VenueScript => ({
  name,
  routes: [klines(quote), depth(quote), bookTicker(quote)],
  limit: { weight: 6000, seconds: 60 },
  refusals: {
    unknownSymbol: () => ({ status: 400, body: { code: -1121, msg: 'Invalid symbol.' } }),
    rateLimited: {
      status: 429,
      body: {
        code: -1003,
        msg: 'Too much request weight used; current limit is 6000 request weight per 1 MINUTE. Please use WebSocket Streams for live updates to avoid polling the API.',
      },
    },
  },
})

export const binance = script('binance', 'USDT')
export const binanceUs = script('binance_us', 'USD')

const refusal = (code: number, msg: string) => ({ status: 400, rows: [], wrap: () => ({ code, msg }) })
