/**
 * Bitfinex: candles newest first as `[time in ms, open, close, high, low, volume]`, at most 10,000, without the minutes in
 * which nothing traded; books as `[price, count, amount]` with negative amounts on the ask side.
 *
 * Source: Bitfinex API v2, "Candles", "Book", "Ticker", "Requirements and limitations".
 */
import { SYMBOLS } from '../scripted-market.ts'
import type { VenueRoute, VenueScript } from '../scripted-venue.ts'

const MOST = 10_000

function symbolOf(code: string | undefined): string | undefined {
  const base = /^t([A-Z]+):?USD$/.exec(code ?? '')?.[1]
  const symbol = `${base === 'UST' ? 'USDT' : base}-USD`
  return base !== undefined && symbol in SYMBOLS && symbol !== 'BNB-USD' ? symbol : undefined
}

const candles: VenueRoute = {
  name: 'candles',
  path: /^\/v2\/candles\/trade:1m:(t[A-Z:]+)\/hist$/,
  symbol: ([, code]) => symbolOf(code),
  answer({ query }, view, symbol) {
    const limit = Math.min(MOST, Number(query.get('limit') ?? 120))
    const end = Number(query.get('end') ?? view.now)
    const start = Number(query.get('start') ?? end - limit * 60_000)
    const isAscending = query.get('sort') === '1'
    const rows = view
      .bars(symbol, start / 1000, Math.floor(end / 1000) + 1)
      .filter(({ trades }) => trades > 0)
      .map(({ time, open, high, low, close, volume }) => [time * 1000, open, close, high, low, volume])
    return { rows: (isAscending ? rows : rows.toReversed()).slice(0, limit), wrap: (list) => list }
  },
}

const book: VenueRoute = {
  name: 'book',
  path: /^\/v2\/book\/(t[A-Z:]+)\/P0$/,
  symbol: ([, code]) => symbolOf(code),
  answer({ query }, view, symbol) {
    const { bids, asks } = view.book(symbol, Number(query.get('len') ?? 25))
    const side = (levels: typeof bids, sign: 1 | -1) =>
      levels.map(([price, amount], i) => [price, 1 + (i % 4), sign * amount])
    return { rows: [...side(bids, 1), ...side(asks, -1)], wrap: (rows) => rows }
  },
}

const ticker: VenueRoute = {
  name: 'ticker',
  path: /^\/v2\/ticker\/(t[A-Z:]+)$/,
  symbol: ([, code]) => symbolOf(code),
  answer(_, view, symbol) {
    const { bids, asks } = view.book(symbol, 1)
    const price = view.price(symbol)
    return {
      rows: [bids[0]![0], bids[0]![1], asks[0]![0], asks[0]![1], 0, 0, price, 1040, price * 1.01, price * 0.99],
      wrap: (row) => row,
    }
  },
}

export const bitfinex: VenueScript = {
  name: 'bitfinex',
  routes: [candles, book, ticker],
  limit: { weight: 30, seconds: 60 },
  refusals: {
    // An unknown pair has no candles, and its book is an error.
    unknownSymbol: ({ path }) =>
      path.startsWith('/v2/candles/')
        ? { status: 200, body: [] }
        : { status: 500, body: ['error', 10_020, 'symbol: invalid'] },
    rateLimited: { status: 429, body: ['error', 11_010, 'ratelimit: error'] },
  },
}
