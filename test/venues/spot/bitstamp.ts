/**
 * Bitstamp: OHLC oldest first as objects of text, at most 1,000, quiet minutes filled; order books and tickers.
 *
 * Source: Bitstamp API v2, "OHLC data", "Order book", "Ticker", "Request limits".
 */
import { SYMBOLS } from '../scripted-market.ts'
import type { VenueRoute, VenueScript } from '../scripted-venue.ts'

const MOST = 1000

function symbolOf(code: string | undefined): string | undefined {
  const symbol = `${(code ?? '').replace(/usd$/, '').toUpperCase()}-USD`
  return code?.endsWith('usd') === true && symbol in SYMBOLS && symbol !== 'BNB-USD' ? symbol : undefined
}

const text = (symbol: string, value: number): string => value.toFixed(SYMBOLS[symbol]!.digits)

const ohlc: VenueRoute = {
  name: 'candles',
  path: /^\/api\/v2\/ohlc\/([^/]+)\/?$/,
  symbol: ([, code]) => symbolOf(code),
  answer({ query }, view, symbol) {
    const limit = Number(query.get('limit') ?? NaN)
    if (Number(query.get('step')) !== 60) return invalid('step', 'Value is not a valid choice.')
    if (!(limit >= 1 && limit <= MOST)) return invalid('limit', `Ensure this value is between 1 and ${MOST}.`)
    const last = Math.floor(view.now / 60_000) * 60
    const asked = { start: numberOf(query.get('start')), end: numberOf(query.get('end')) }
    const end = asked.end ?? (asked.start === null ? last : asked.start + (limit - 1) * 60)
    const start = asked.start ?? end - (limit - 1) * 60
    const isWithoutCurrent = query.get('exclude_current_candle') === 'true'
    const bars = view.bars(symbol, start, end + 1).filter(({ time }) => !isWithoutCurrent || time < last)
    const rows = (asked.start === null ? bars.slice(-limit) : bars.slice(0, limit)).map((bar) => ({
      timestamp: String(bar.time),
      open: text(symbol, bar.open),
      high: text(symbol, bar.high),
      low: text(symbol, bar.low),
      close: text(symbol, bar.close),
      volume: bar.volume.toFixed(8),
    }))
    return { rows, wrap: (ohlc) => ({ data: { pair: symbol.replace('-', '/'), ohlc } }) }
  },
}

const book: VenueRoute = {
  name: 'book',
  path: /^\/api\/v2\/order_book\/([^/]+)\/?$/,
  symbol: ([, code]) => symbolOf(code),
  answer(_, view, symbol) {
    const { bids, asks } = view.book(symbol, 120)
    const side = (levels: typeof bids) => levels.map(([price, amount]) => [text(symbol, price), amount.toFixed(8)])
    return {
      rows: side(bids),
      wrap: (rows) => ({
        timestamp: String(Math.floor(view.now / 1000)),
        microtimestamp: String(view.now * 1000),
        bids: rows,
        asks: rows.length === 0 ? [] : side(asks),
      }),
    }
  },
}

const ticker: VenueRoute = {
  name: 'ticker',
  path: /^\/api\/v2\/ticker\/([^/]+)\/?$/,
  symbol: ([, code]) => symbolOf(code),
  answer(_, view, symbol) {
    const { bids, asks } = view.book(symbol, 1)
    const price = view.price(symbol)
    const figures = {
      timestamp: String(Math.floor(view.now / 1000)),
      open: text(symbol, price),
      high: text(symbol, price * 1.01),
      low: text(symbol, price * 0.99),
      last: text(symbol, price),
      volume: '1353.40891',
      vwap: text(symbol, price),
      bid: text(symbol, bids[0]![0]),
      ask: text(symbol, asks[0]![0]),
      side: '0',
      open_24: text(symbol, price),
      percent_change_24: '0.00',
    }
    return { rows: [figures], wrap: (rows) => rows[0] ?? {} }
  },
}

export const bitstamp: VenueScript = {
  name: 'bitstamp',
  routes: [ohlc, book, ticker],
  limit: { weight: 10_000, seconds: 600, burst: 400 },
  refusals: {
    unknownSymbol: () => ({
      status: 404,
      body: { status: 'error', reason: 'Currency pair not found', code: '404.002' },
    }),
    rateLimited: { status: 429, body: { status: 'error', reason: 'Request rate limit exceeded.', code: '400.002' } },
  },
}

const numberOf = (written: string | null): number | null => (written === null ? null : Number(written))

const invalid = (field: string, message: string) => ({
  status: 400,
  rows: [],
  wrap: () => ({ code: 'Missing or invalid argument', errors: [{ field, message, code: 'invalid' }] }),
})
