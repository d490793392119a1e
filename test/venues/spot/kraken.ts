/**
 * Kraken spot: OHLC of the last 720 minutes and no more, oldest first, quiet minutes filled, the last row still forming;
 * depth and tickers. Errors come with status 200, and results under the pair's internal name.
 *
 * Source: Kraken REST API, "Get OHLC Data", "Get Order Book", "Get Ticker Information", "Rate Limits".
 */
import { SYMBOLS } from '../scripted-market.ts'
import type { VenueRequest, VenueRoute, VenueScript } from '../scripted-venue.ts'

const MOST = 720

/** Names in requests, and the names in results where they differ. */
const PAIRS: Readonly<Record<string, readonly [symbol: string, result: string]>> = {
  XBTUSD: ['BTC-USD', 'XXBTZUSD'],
  ETHUSD: ['ETH-USD', 'XETHZUSD'],
  SOLUSD: ['SOL-USD', 'SOLUSD'],
  XRPUSD: ['XRP-USD', 'XXRPZUSD'],
  XDGUSD: ['DOGE-USD', 'XDGUSD'],
  ADAUSD: ['ADA-USD', 'ADAUSD'],
  LTCUSD: ['LTC-USD', 'XLTCZUSD'],
  LINKUSD: ['LINK-USD', 'LINKUSD'],
  AVAXUSD: ['AVAX-USD', 'AVAXUSD'],
  BNBUSD: ['BNB-USD', 'BNBUSD'],
  USDTUSD: ['USDT-USD', 'USDTZUSD'],
}
const ALIASES: Readonly<Record<string, string>> = { BTCUSD: 'XBTUSD', DOGEUSD: 'XDGUSD', USDTZUSD: 'USDTUSD' }

function pairOf({ query }: VenueRequest): readonly [symbol: string, result: string] | undefined {
  const asked = (query.get('pair') ?? '').replace('/', '').toUpperCase()
  const known = Object.values(PAIRS).find(([, result]) => result === asked)
  return PAIRS[ALIASES[asked] ?? asked] ?? known
}

const pair = (request: VenueRequest) => pairOf(request)!
const symbol: VenueRoute['symbol'] = (_, request) => pairOf(request)?.[0]

const ohlc: VenueRoute = {
  name: 'candles',
  path: /^\/0\/public\/OHLC$/,
  symbol,
  answer(request, view, code) {
    if (Number(request.query.get('interval') ?? 1) !== 1) return failed('EGeneral:Invalid arguments:interval')
    const [, name] = pair(request)
    const { digits } = SYMBOLS[code]!
    const current = Math.floor(view.now / 60_000) * 60
    // Rows after `since`, but never more than the last 720.
    const since = Number(request.query.get('since') ?? 0)
    const bars = view.bars(code, Math.max(current - (MOST - 1) * 60, since + 1), current + 60)
    const rows = bars.map(({ time, open, high, low, close, volume, trades }) => {
      const price = (value: number): string => value.toFixed(digits)
      const average = volume === 0 ? '0.0' : price((high + low + close) / 3)
      return [time, ...[open, high, low, close].map(price), average, volume.toFixed(8), trades]
    })
    const last = rows.length > 1 ? rows.at(-2)![0] : since
    return { rows, wrap: (list) => ({ error: [], result: { [name]: list, last } }) }
  },
}

const depth: VenueRoute = {
  name: 'book',
  path: /^\/0\/public\/Depth$/,
  symbol,
  answer(request, view, code) {
    const [, name] = pair(request)
    const { bids, asks } = view.book(code, Math.min(500, Number(request.query.get('count') ?? 100)))
    const { digits } = SYMBOLS[code]!
    const at = Math.floor(view.now / 1000)
    const side = (levels: typeof bids) =>
      levels.map(([price, quantity], i) => [price.toFixed(digits), quantity.toFixed(3), at - (i % 9)])
    return {
      rows: side(bids),
      wrap: (rows) => ({ error: [], result: { [name]: { asks: rows.length === 0 ? [] : side(asks), bids: rows } } }),
    }
  },
}

const ticker: VenueRoute = {
  name: 'ticker',
  path: /^\/0\/public\/Ticker$/,
  symbol,
  answer(request, view, code) {
    const [, name] = pair(request)
    const { bids, asks } = view.book(code, 1)
    const { digits } = SYMBOLS[code]!
    const price = (value: number): string => value.toFixed(digits)
    const figures = {
      a: [price(asks[0]![0]), '1', '1.000'],
      b: [price(bids[0]![0]), '1', '1.000'],
      c: [price(view.price(code)), '0.00067643'],
      v: ['1045.77421391', '2103.32450127'],
      p: [price(view.price(code)), price(view.price(code))],
      t: [9_123, 21_048],
      l: [price(view.price(code) * 0.98), price(view.price(code) * 0.97)],
      h: [price(view.price(code) * 1.01), price(view.price(code) * 1.02)],
      o: price(view.price(code)),
    }
    return { rows: [figures], wrap: (rows) => ({ error: [], result: rows.length === 0 ? {} : { [name]: rows[0] } }) }
  },
}

const status: VenueRoute = {
  name: 'status',
  path: /^\/0\/public\/(?:Time|SystemStatus)$/,
  answer: (_, view) => ({
    rows: [],
    wrap: () => ({
      error: [],
      result: {
        status: 'online',
        unixtime: Math.floor(view.now / 1000),
        rfc1123: new Date(view.now).toUTCString(),
        timestamp: new Date(view.now).toISOString(),
      },
    }),
  }),
}

export const kraken: VenueScript = {
  name: 'kraken',
  routes: [ohlc, depth, ticker, status],
  limit: { weight: 1, seconds: 1, burst: 15 },
  refusals: {
    unknownSymbol: () => ({ status: 200, body: { error: ['EQuery:Unknown asset pair'] } }),
    rateLimited: { status: 200, body: { error: ['EGeneral:Too many requests'] } },
    unknownRoute: { status: 404, body: { error: ['EGeneral:Unknown method'] } },
  },
}

const failed = (error: string) => ({ rows: [], wrap: () => ({ error: [error] }) })
