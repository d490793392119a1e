/**
 * Coinbase Exchange: candles newest first as `[time, low, high, open, close, volume]`, at most 300, without the minutes
 * in which nothing traded; books and tickers. Coinbase Advanced Trade, at the same address here: books with a limit.
 *
 * Source: Coinbase Exchange REST API, "Get product candles", "Get product book", "Get product ticker", "Rate limits";
 * Coinbase Advanced Trade API, "Get Public Product Book".
 */
import { SYMBOLS } from '../scripted-market.ts'
import type { VenueRoute, VenueScript } from '../scripted-venue.ts'

const MOST = 300

/** Products have the names of the market. BNB and USDT have a product too. */
const symbolOf = (code: string | undefined): string | undefined =>
  code !== undefined && code in SYMBOLS ? code : undefined

const candles: VenueRoute = {
  name: 'candles',
  path: /^\/products\/([^/]+)\/candles$/,
  symbol: ([, code]) => symbolOf(code),
  answer({ query }, view, symbol) {
    const granularity = Number(query.get('granularity') ?? 60)
    const end = timeOf(query.get('end')) ?? Math.floor(view.now / 1000)
    const start = timeOf(query.get('start')) ?? end - MOST * granularity
    if (granularity !== 60) return invalid('Unsupported granularity')
    if ((end - start) / granularity > MOST)
      return invalid('granularity too small for the requested time range. Count of aggregations requested exceeds 300')
    const rows = view
      .bars(symbol, start, end + 1)
      .filter(({ trades }) => trades > 0)
      .map(({ time, low, high, open, close, volume }) => [time, low, high, open, close, volume])
    return { rows: rows.toReversed(), wrap: (list) => list }
  },
}

const book: VenueRoute = {
  name: 'book',
  path: /^\/products\/([^/]+)\/book$/,
  symbol: ([, code]) => symbolOf(code),
  answer({ query }, view, symbol) {
    const level = Number(query.get('level') ?? 1)
    const { bids, asks } = view.book(symbol, level === 1 ? 1 : 120)
    const side = (levels: typeof bids) =>
      levels.map(([price, size], i) => [price.toFixed(SYMBOLS[symbol]!.digits), size.toFixed(8), 1 + (i % 5)])
    return {
      rows: side(bids),
      wrap: (rows) => ({
        bids: rows,
        asks: rows.length === 0 ? [] : side(asks),
        sequence: Math.floor(view.now / 10),
        auction_mode: false,
        auction: null,
        time: new Date(view.now).toISOString(),
      }),
    }
  },
}

const limitedBook: VenueRoute = {
  name: 'book',
  path: /^\/api\/v3\/brokerage\/market\/product_book$/,
  symbol: (_, { query }) => symbolOf(query.get('product_id') ?? undefined),
  answer({ query }, view, symbol) {
    const { bids, asks } = view.book(symbol, Math.min(120, Number(query.get('limit') ?? 120)))
    const { digits } = SYMBOLS[symbol]!
    const side = (levels: typeof bids) =>
      levels.map(([price, size]) => ({ price: price.toFixed(digits), size: size.toFixed(8) }))
    const [bid, ask] = [bids[0]![0], asks[0]![0]]
    const middle = (bid + ask) / 2
    return {
      rows: side(bids),
      wrap: (rows) => ({
        pricebook: {
          product_id: symbol,
          bids: rows,
          asks: rows.length === 0 ? [] : side(asks),
          time: new Date(view.now).toISOString(),
        },
        last: middle.toFixed(digits),
        mid_market: middle.toFixed(digits + 1),
        spread_bps: (((ask - bid) / middle) * 10_000).toFixed(4),
        spread_absolute: (ask - bid).toFixed(digits),
      }),
    }
  },
}

const ticker: VenueRoute = {
  name: 'ticker',
  path: /^\/products\/([^/]+)\/ticker$/,
  symbol: ([, code]) => symbolOf(code),
  answer(_, view, symbol) {
    const { bids, asks } = view.book(symbol, 1)
    const { digits } = SYMBOLS[symbol]!
    return one({
      ask: asks[0]![0].toFixed(digits),
      bid: bids[0]![0].toFixed(digits),
      volume: '10413.52',
      trade_id: Math.floor(view.now / 1000),
      price: view.price(symbol).toFixed(digits),
      size: '0.00698254',
      time: new Date(view.now).toISOString(),
    })
  },
}

export const coinbase: VenueScript = {
  name: 'coinbase',
  routes: [candles, book, limitedBook, ticker],
  limit: { weight: 10, seconds: 1, burst: 15 },
  refusals: {
    unknownSymbol: () => ({ status: 404, body: { message: 'NotFound' } }),
    rateLimited: { status: 429, body: { message: 'Public rate limit exceeded' } },
  },
}

const invalid = (message: string) => ({ status: 400, rows: [], wrap: () => ({ message }) })

/** An answer that is one object. */
const one = (object: object) => ({ rows: [object], wrap: (rows: readonly unknown[]) => rows[0] ?? {} })

/** ISO 8601 or epoch seconds. */
function timeOf(written: string | null): number | null {
  if (written === null || written === '') return null
  return /^\d+$/.test(written) ? Number(written) : Math.floor(Date.parse(written) / 1000)
}
