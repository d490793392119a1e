/**
 * The public interfaces of eight venues for perpetual contracts: current funding, settled funding, order books, and the
 * best prices where they come with it.
 *
 * Sources: Binance USDⓈ-M Futures API ("Mark Price", "Get Funding Rate Info", "Get Funding Rate History", "24hr
 * Ticker"), Bybit V5 ("Get Tickers", "Get Funding Rate History"), OKX v5 ("Get funding rate", "Get funding rate
 * history"), Hyperliquid ("Retrieve perpetuals asset contexts", "Retrieve historical funding rates"), dYdX Indexer
 * ("Get Perpetual Markets", "Get Historical Funding"), Kraken Futures ("Tickers", "Instruments",
 * "Historical funding rates"), Gate v4 ("List all futures contracts", "Futures market historical funding rate"), BitMEX
 * ("Instrument", "Funding").
 */
import type { VenueAnswer, VenueRequest, VenueRoute, VenueScript } from '../scripted-venue.ts'
import type { VenueView } from '../venue-view.ts'
import { CONTRACTS, type FundingMarket, type PerpetualVenue } from './funding-market.ts'

const baseOf = (symbol: string): string => symbol.replace('-USD', '')
const list = (rows: readonly unknown[], wrap: (rows: readonly unknown[]) => unknown = (all) => all): VenueAnswer => ({
  rows,
  wrap,
})
const iso = (seconds: number): string => new Date(seconds * 1000).toISOString()
/** Coins in one contract. */
const [OKX_CONTRACT, GATE_CONTRACT, BITMEX_CONTRACT] = [0.01, 0.001, 0.0001]
const MESSAGE = { status: 429, body: { message: 'Too many requests' } }

/** The scripts of all eight venues. They read the same rates as the test does. */
export function perpetualVenues(funding: FundingMarket): readonly VenueScript[] {
  const spotOf = (view: VenueView, symbol: string): number => funding.spot((name) => view.price(name), symbol, view.now)
  const markOf = (venue: PerpetualVenue, view: VenueView, symbol: string): number =>
    funding.mark(venue, symbol, spotOf(view, symbol), view.dataEnd)
  const text = (value: number, digits = 8): string => value.toFixed(digits)
  const price = (value: number): string => String(Number(value.toPrecision(8)))
  /** Current rate and next settlement. A frozen venue shows those of the moment at which it froze. */
  const current = (venue: PerpetualVenue, view: VenueView, symbol: string) => {
    const next = funding.next(venue, symbol, view.dataEnd)
    return { next, rate: funding.rate(venue, symbol, next), hours: funding.hours(venue, symbol) }
  }
  const listed = (view: VenueView): string[] => CONTRACTS.filter((symbol) => !view.isDelisted(symbol))
  /** Settlements of a query in milliseconds, newest last. */
  const settled = (venue: PerpetualVenue, view: VenueView, symbol: string, from: number, to: number) =>
    funding.settled(venue, symbol, from / 1000 - 1, Math.min(to, view.dataEnd) / 1000)
  const route = (
    name: string,
    path: RegExp,
    answer: VenueRoute['answer'],
    more: Partial<VenueRoute> = {},
  ): VenueRoute => ({ name, path, answer, ...more })
  const bySymbol = (read: (request: VenueRequest) => string | null) => ({
    symbol: (_: unknown, request: VenueRequest) => {
      const base = read(request)
      const symbol = `${base === 'XBT' ? 'BTC' : base}-USD`
      return base !== null && CONTRACTS.includes(symbol) ? symbol : undefined
    },
  })
  const number = (request: VenueRequest, name: string, fallback: number): number =>
    Number(request.query.get(name) ?? fallback)
  /** An order book. Without bids it has no asks either. */
  const bookRoute = (
    path: RegExp,
    level: (price: number, quantity: number) => unknown,
    wrap: (sides: { readonly bids: readonly unknown[]; readonly asks: readonly unknown[] }, symbol: string) => unknown,
    more: Partial<VenueRoute>,
  ): VenueRoute =>
    route(
      'book',
      path,
      (_, view, symbol) => {
        const { bids, asks } = view.book(symbol, 100)
        const side = (levels: typeof bids) => levels.map(([at, quantity]) => level(at, quantity))
        return list(side(bids), (rows) => wrap({ bids: rows, asks: rows.length === 0 ? [] : side(asks) }, symbol))
      },
      more,
    )
  const pair = (at: number, quantity: number): readonly string[] => [price(at), text(quantity, 3)]

  const binance: VenueScript = {
    name: 'binance-futures',
    limit: { weight: 2400, seconds: 60 },
    refusals: {
      unknownSymbol: () => ({ status: 400, body: { code: -1121, msg: 'Invalid symbol.' } }),
      rateLimited: { status: 429, body: { code: -1003, msg: 'Too many requests.' } },
    },
    routes: [
      route(
        'rates',
        /^\/fapi\/v1\/premiumIndex$/,
        (_, view) =>
          list(
            listed(view).map((symbol) => {
              const { next, rate } = current('binance', view, symbol)
              return {
                symbol: `${baseOf(symbol)}USDT`,
                markPrice: text(markOf('binance', view, symbol)),
                indexPrice: text(spotOf(view, symbol)),
                estimatedSettlePrice: text(spotOf(view, symbol)),
                lastFundingRate: text(rate),
                interestRate: '0.00010000',
                nextFundingTime: next * 1000,
                time: view.dataEnd,
              }
            }),
          ),
        { weight: () => 10 },
      ),
      route('intervals', /^\/fapi\/v1\/fundingInfo$/, (_, view) =>
        list(
          listed(view)
            .filter((symbol) => funding.hours('binance', symbol) !== 8)
            .map((symbol) => ({
              symbol: `${baseOf(symbol)}USDT`,
              adjustedFundingRateCap: '0.03000000',
              adjustedFundingRateFloor: '-0.03000000',
              fundingIntervalHours: funding.hours('binance', symbol),
              disclaimer: false,
            })),
        ),
      ),
      route(
        'settled',
        /^\/fapi\/v1\/fundingRate$/,
        (request, view, symbol) => {
          const limit = Math.min(1000, number(request, 'limit', 100))
          const end = number(request, 'endTime', view.now)
          const rows = settled('binance', view, symbol, number(request, 'startTime', end - limit * 8 * 3_600_000), end)
          const kept = request.query.has('startTime') ? rows.slice(0, limit) : rows.slice(-limit)
          return list(
            kept.map(({ time, rate }) => ({
              symbol: `${baseOf(symbol)}USDT`,
              fundingTime: time * 1000,
              fundingRate: text(rate),
              markPrice: text(markOf('binance', view, symbol)),
            })),
          )
        },
        bySymbol(({ query }) => query.get('symbol')?.replace(/USDT$/, '') ?? null),
      ),
      route('volumes', /^\/fapi\/v1\/ticker\/24hr$/, (_, view) =>
        list(
          listed(view).map((symbol) => ({
            symbol: `${baseOf(symbol)}USDT`,
            lastPrice: price(markOf('binance', view, symbol)),
            volume: '100000',
            quoteVolume: text(100_000 * markOf('binance', view, symbol), 2),
            closeTime: view.dataEnd,
          })),
        ),
      ),
      route(
        'book',
        /^\/fapi\/v1\/depth$/,
        (request, view, symbol) => {
          const { bids, asks } = view.book(symbol, Math.min(200, number(request, 'limit', 500)))
          const side = (levels: typeof bids) => levels.map(([at, quantity]) => [price(at), text(quantity, 3)])
          return list(side(bids), (rows) => ({
            lastUpdateId: Math.floor(view.now / 10),
            E: view.dataEnd,
            T: view.dataEnd,
            bids: rows,
            asks: rows.length === 0 ? [] : side(asks),
          }))
        },
        bySymbol(({ query }) => query.get('symbol')?.replace(/USDT$/, '') ?? null),
      ),
    ],
  }

  const bybit: VenueScript = {
    name: 'bybit',
    limit: { weight: 600, seconds: 5 },
    refusals: {
      unknownSymbol: () => ({
        status: 200,
        body: { retCode: 10_001, retMsg: 'params error: symbol invalid', result: {} },
      }),
      rateLimited: { status: 403, body: { retCode: 10_006, retMsg: 'Too many visits!', result: {} } },
    },
    routes: [
      route('rates', /^\/v5\/market\/tickers$/, ({ query }, view) => {
        const isInverse = query.get('category') === 'inverse'
        const symbols = isInverse ? listed(view).slice(0, 2) : listed(view)
        const rows = symbols.map((symbol) => {
          const { next, rate, hours } = current('bybit', view, symbol)
          const mark = markOf('bybit', view, symbol)
          return {
            symbol: `${baseOf(symbol)}${isInverse ? 'USD' : 'USDT'}`,
            lastPrice: price(mark),
            indexPrice: price(spotOf(view, symbol)),
            markPrice: price(mark),
            openInterest: '68744.761',
            openInterestValue: text(68_744 * mark, 2),
            turnover24h: text(91_705 * mark, 4),
            volume24h: '91705.276',
            fundingRate: text(rate),
            nextFundingTime: String(next * 1000),
            fundingIntervalHour: String(hours),
            bid1Price: price(mark * 0.9999),
            ask1Price: price(mark * 1.0001),
            bid1Size: '84.489',
            ask1Size: '83.020',
          }
        })
        return list(rows, (all) => ({
          retCode: 0,
          retMsg: 'OK',
          result: { category: isInverse ? 'inverse' : 'linear', list: all },
          retExtInfo: {},
          time: view.dataEnd,
        }))
      }),
      route(
        'settled',
        /^\/v5\/market\/funding\/history$/,
        (request, view, symbol) => {
          const limit = Math.min(200, number(request, 'limit', 200))
          const end = number(request, 'endTime', view.now)
          const rows = settled('bybit', view, symbol, number(request, 'startTime', end - limit * 8 * 3_600_000), end)
          const newest = rows.toReversed().slice(0, limit)
          return list(
            newest.map(({ time, rate }) => ({
              symbol: `${baseOf(symbol)}USDT`,
              fundingRate: text(rate),
              fundingRateTimestamp: String(time * 1000),
            })),
            (all) => ({
              retCode: 0,
              retMsg: 'OK',
              result: { category: 'linear', list: all },
              retExtInfo: {},
              time: view.dataEnd,
            }),
          )
        },
        bySymbol(({ query }) => query.get('symbol')?.replace(/USDT$/, '') ?? null),
      ),
      bookRoute(
        /^\/v5\/market\/orderbook$/,
        pair,
        ({ bids, asks }, symbol) => ({
          retCode: 0,
          retMsg: 'OK',
          result: { s: `${baseOf(symbol)}USDT`, b: bids, a: asks },
        }),
        bySymbol(({ query }) => query.get('symbol')?.replace(/USDT$/, '') ?? null),
      ),
    ],
  }

  const okx: VenueScript = {
    name: 'okx',
    limit: { weight: 20, seconds: 2 },
    refusals: {
      unknownSymbol: () => ({ status: 200, body: { code: '51001', msg: "Instrument ID doesn't exist", data: [] } }),
      rateLimited: { status: 429, body: { code: '50011', msg: 'Too Many Requests', data: [] } },
    },
    routes: [
      route('rates', /^\/api\/v5\/public\/funding-rate$/, (_, view) =>
        list(
          listed(view).map((symbol) => {
            const { next, rate, hours } = current('okx', view, symbol)
            return {
              instId: `${baseOf(symbol)}-USDT-SWAP`,
              instType: 'SWAP',
              fundingRate: text(rate, 10),
              nextFundingRate: '',
              fundingTime: String(next * 1000),
              nextFundingTime: String((next + hours * 3600) * 1000),
              prevFundingTime: String((next - hours * 3600) * 1000),
              maxFundingRate: '0.015',
              minFundingRate: '-0.015',
              ts: String(view.dataEnd),
            }
          }),
          (data) => ({ code: '0', msg: '', data }),
        ),
      ),
      route('volumes', /^\/api\/v5\/market\/tickers$/, (_, view) =>
        list(
          listed(view).map((symbol) => {
            const mark = markOf('okx', view, symbol)
            return {
              instType: 'SWAP',
              instId: `${baseOf(symbol)}-USDT-SWAP`,
              last: price(mark),
              lastSz: '1',
              askPx: price(mark * 1.0001),
              askSz: '11',
              bidPx: price(mark * 0.9999),
              bidSz: '5',
              vol24h: '2222000',
              volCcy24h: '22220',
              ts: String(view.dataEnd),
            }
          }),
          (data) => ({ code: '0', msg: '', data }),
        ),
      ),
      route(
        'settled',
        /^\/api\/v5\/public\/funding-rate-history$/,
        (request, view, symbol) => {
          const limit = Math.min(400, number(request, 'limit', 400))
          // `after` asks for older rows than a time, `before` for newer ones.
          const end = number(request, 'after', view.now + 1) - 1
          const start = number(request, 'before', end - limit * 8 * 3_600_000)
          const rows = settled('okx', view, symbol, start, end).toReversed().slice(0, limit)
          return list(
            rows.map(({ time, rate }) => ({
              instId: `${baseOf(symbol)}-USDT-SWAP`,
              instType: 'SWAP',
              fundingRate: text(rate, 10),
              realizedRate: text(rate, 10),
              fundingTime: String(time * 1000),
              method: 'current_period',
            })),
            (data) => ({ code: '0', msg: '', data }),
          )
        },
        bySymbol(({ query }) => query.get('instId')?.split('-')[0] ?? null),
      ),
      route('instruments', /^\/api\/v5\/public\/instruments$/, (_, view) =>
        list(
          listed(view).map((symbol) => ({
            instType: 'SWAP',
            instId: `${baseOf(symbol)}-USDT-SWAP`,
            ctType: 'linear',
            ctVal: String(OKX_CONTRACT),
            ctMult: '1',
            ctValCcy: baseOf(symbol),
          })),
          (data) => ({ code: '0', msg: '', data }),
        ),
      ),
      bookRoute(
        /^\/api\/v5\/market\/books$/,
        (at, quantity) => [price(at), text(quantity / OKX_CONTRACT, 2), '0', '3'],
        (sides) => ({ code: '0', msg: '', data: [sides] }),
        bySymbol(({ query }) => query.get('instId')?.split('-')[0] ?? null),
      ),
    ],
  }

  const info = (type: string) => ({
    method: 'POST' as const,
    accepts: ({ body }: VenueRequest) => (body as { type?: unknown } | undefined)?.type === type,
  })
  const hyperliquid: VenueScript = {
    name: 'hyperliquid',
    limit: { weight: 1200, seconds: 60 },
    refusals: { unknownSymbol: () => ({ status: 500, body: null }), rateLimited: MESSAGE },
    routes: [
      route(
        'rates',
        /^\/info$/,
        (_, view) =>
          list(
            listed(view).map((symbol) => {
              const mark = markOf('hyperliquid', view, symbol)
              return {
                funding: text(current('hyperliquid', view, symbol).rate, 10),
                openInterest: '24518.2',
                prevDayPx: price(mark),
                dayNtlVlm: text(31_000 * mark, 4),
                premium: '0.0002',
                oraclePx: price(spotOf(view, symbol)),
                markPx: price(mark),
                midPx: price(mark),
                impactPxs: [price(mark * 0.9999), price(mark * 1.0001)],
              }
            }),
            (contexts) => [
              {
                universe: listed(view).map((symbol) => ({ szDecimals: 3, name: baseOf(symbol), maxLeverage: 40 })),
                marginTables: [],
              },
              contexts,
            ],
          ),
        { ...info('metaAndAssetCtxs'), weight: () => 20 },
      ),
      route(
        'settled',
        /^\/info$/,
        ({ body }, view, symbol) => {
          const { startTime, endTime = view.now } = body as { startTime: number; endTime?: number }
          const rows = settled('hyperliquid', view, symbol, startTime, endTime).slice(0, 500)
          return list(
            rows.map(({ time, rate }) => ({
              coin: baseOf(symbol),
              fundingRate: text(rate, 10),
              premium: '0.0002',
              time: time * 1000 + 17,
            })),
          )
        },
        {
          ...info('fundingHistory'),
          ...bySymbol(({ body }) => (body as { coin?: string }).coin ?? null),
          weight: () => 20,
        },
      ),
      bookRoute(
        /^\/info$/,
        (at, quantity) => ({ px: price(at), sz: text(quantity, 3), n: 2 }),
        ({ bids, asks }, symbol) => ({ coin: baseOf(symbol), levels: [bids, asks] }),
        { ...info('l2Book'), ...bySymbol(({ body }) => (body as { coin?: string }).coin ?? null), weight: () => 2 },
      ),
    ],
  }

  const dydx: VenueScript = {
    name: 'dydx',
    limit: { weight: 100, seconds: 10 },
    refusals: {
      unknownSymbol: () => ({ status: 404, body: { errors: [{ msg: 'market not found' }] } }),
      rateLimited: { status: 429, body: { errors: [{ msg: 'Too many requests' }] } },
    },
    routes: [
      route('rates', /^\/v4\/perpetualMarkets$/, (_, view) =>
        list(
          listed(view).map((symbol, i) => ({
            ticker: symbol,
            clobPairId: String(i),
            status: 'ACTIVE',
            oraclePrice: price(spotOf(view, symbol)),
            priceChange24H: '12.1',
            volume24H: text(9_000 * spotOf(view, symbol), 4),
            trades24H: 63_065,
            nextFundingRate: text(current('dydx', view, symbol).rate, 12),
            openInterest: '381.7348',
            marketType: 'CROSS',
            defaultFundingRate1H: '0',
          })),
          (rows) => ({
            markets: Object.fromEntries(
              rows.map((row) => [(row as { ticker?: string } | null)?.ticker ?? 'null', row]),
            ),
          }),
        ),
      ),
      route(
        'settled',
        /^\/v4\/historicalFunding\/([A-Z0-9]+)-USD$/,
        (request, view, symbol) => {
          const limit = Math.min(100, number(request, 'limit', 100))
          const before = request.query.get('effectiveBeforeOrAt')
          const end = before === null ? view.now : Date.parse(before)
          const rows = settled('dydx', view, symbol, end - limit * 3_600_000, end)
            .toReversed()
            .slice(0, limit)
          return list(
            rows.map(({ time, rate }) => ({
              ticker: symbol,
              rate: text(rate, 12),
              price: price(spotOf(view, symbol)),
              effectiveAt: iso(time),
              effectiveAtHeight: String(Math.floor(time / 1.1)),
            })),
            (historicalFunding) => ({ historicalFunding }),
          )
        },
        bySymbol(({ path }) => /\/([A-Z0-9]+)-USD$/.exec(path)?.[1] ?? null),
      ),
      bookRoute(
        /^\/v4\/orderbooks\/perpetualMarket\/([A-Z0-9]+)-USD$/,
        (at, quantity) => ({ price: price(at), size: text(quantity, 3) }),
        (sides) => sides,
        bySymbol(({ path }) => /\/([A-Z0-9]+)-USD$/.exec(path)?.[1] ?? null),
      ),
    ],
  }

  const krakenCode = (symbol: string): string => `PF_${baseOf(symbol).replace('BTC', 'XBT')}USD`
  const kraken: VenueScript = {
    name: 'kraken-futures',
    limit: { weight: 500, seconds: 10 },
    refusals: {
      unknownSymbol: () => ({ status: 200, body: { result: 'error', error: 'invalidArgument: symbol' } }),
      rateLimited: { status: 200, body: { result: 'error', error: 'apiLimitExceeded' } },
    },
    routes: [
      route('rates', /^\/derivatives\/api\/v3\/tickers$/, (_, view) =>
        list(
          listed(view).map((symbol) => {
            const mark = markOf('kraken', view, symbol)
            return {
              symbol: krakenCode(symbol),
              last: mark,
              lastTime: new Date(view.dataEnd).toISOString(),
              tag: 'perpetual',
              pair: `${baseOf(symbol).replace('BTC', 'XBT')}:USD`,
              markPrice: mark,
              bid: mark * 0.9999,
              ask: mark * 1.0001,
              vol24h: 4_000,
              volumeQuote: 4_000 * mark,
              openInterest: 900,
              fundingRate: current('kraken', view, symbol).rate * mark,
              fundingRatePrediction: current('kraken', view, symbol).rate * mark,
              indexPrice: spotOf(view, symbol),
              suspended: false,
              postOnly: false,
            }
          }),
          (tickers) => ({ result: 'success', serverTime: new Date(view.dataEnd).toISOString(), tickers }),
        ),
      ),
      route('instruments', /^\/derivatives\/api\/v3\/instruments$/, (_, view) =>
        list(
          listed(view).map((symbol) => ({
            symbol: krakenCode(symbol),
            type: 'flexible_futures',
            tradeable: true,
            fundingRateCoefficient: 8,
            maxRelativeFundingRate: 0.005,
          })),
          (instruments) => ({ result: 'success', instruments, serverTime: new Date(view.dataEnd).toISOString() }),
        ),
      ),
      route(
        'settled',
        /^\/derivatives\/api\/v[34]\/historicalfundingrates$/,
        (_, view, symbol) =>
          list(
            settled('kraken', view, symbol, view.now - 30 * 86_400_000, view.now).map(({ time, rate }) => ({
              timestamp: iso(time),
              fundingRate: rate * markOf('kraken', view, symbol),
              relativeFundingRate: rate,
            })),
            (rates) => ({ result: 'success', serverTime: new Date(view.dataEnd).toISOString(), rates }),
          ),
        bySymbol(({ query }) => /^PF_(\w+)USD$/.exec(query.get('symbol') ?? '')?.[1] ?? null),
      ),
      bookRoute(
        /^\/derivatives\/api\/v3\/orderbook$/,
        (at, quantity) => [at, quantity],
        (orderBook) => ({ result: 'success', orderBook }),
        bySymbol(({ query }) => /^PF_(\w+)USD$/.exec(query.get('symbol') ?? '')?.[1] ?? null),
      ),
    ],
  }

  const gate: VenueScript = {
    name: 'gate',
    limit: { weight: 200, seconds: 10 },
    refusals: {
      unknownSymbol: () => ({ status: 400, body: { label: 'CONTRACT_NOT_FOUND', message: 'contract not found' } }),
      rateLimited: { status: 429, body: { label: 'TOO_MANY_REQUESTS', message: 'Request Rate Limit Exceeded' } },
    },
    routes: [
      route('rates', /^\/api\/v4\/futures\/usdt\/contracts$/, (_, view) =>
        list(
          listed(view).map((symbol) => {
            const { next, rate, hours } = current('gate', view, symbol)
            return {
              name: `${baseOf(symbol)}_USDT`,
              type: 'direct',
              quanto_multiplier: String(GATE_CONTRACT),
              mark_price: price(markOf('gate', view, symbol)),
              index_price: price(spotOf(view, symbol)),
              last_price: price(markOf('gate', view, symbol)),
              funding_rate: text(rate, 6),
              funding_rate_indicative: text(rate, 6),
              funding_interval: hours * 3600,
              funding_next_apply: next,
              funding_cap_ratio: '0.75',
              position_size: 90_000_000,
              trade_size: 151_000_000_000,
              in_delisting: false,
            }
          }),
        ),
      ),
      route(
        'settled',
        /^\/api\/v4\/futures\/usdt\/funding_rate$/,
        (request, view, symbol) => {
          const limit = Math.min(1000, number(request, 'limit', 100))
          const end = number(request, 'to', view.now / 1000)
          const start = number(request, 'from', end - limit * 8 * 3600)
          const rows = settled('gate', view, symbol, start * 1000, end * 1000)
            .toReversed()
            .slice(0, limit)
          return list(rows.map(({ time, rate }) => ({ t: time, r: text(rate, 6) })))
        },
        bySymbol(({ query }) => query.get('contract')?.split('_')[0] ?? null),
      ),
      bookRoute(
        /^\/api\/v4\/futures\/usdt\/order_book$/,
        (at, quantity) => ({ p: price(at), s: Math.round(quantity / GATE_CONTRACT) }),
        (sides) => ({ id: 1, ...sides }),
        bySymbol(({ query }) => query.get('contract')?.split('_')[0] ?? null),
      ),
    ],
  }

  const bitmexCode = (symbol: string): string => (symbol === 'BTC-USD' ? 'XBTUSD' : `${baseOf(symbol)}USDT`)
  const bitmex: VenueScript = {
    name: 'bitmex',
    limit: { weight: 30, seconds: 60 },
    refusals: {
      unknownSymbol: () => ({ status: 200, body: [] }),
      rateLimited: {
        status: 429,
        body: { error: { message: 'Rate limit exceeded, retry in 1 seconds.', name: 'RateLimitError' } },
      },
    },
    routes: [
      route('rates', /^\/api\/v1\/instrument\/active$/, (_, view) =>
        list(
          listed(view).map((symbol) => {
            const { next, rate, hours } = current('bitmex', view, symbol)
            const isInverse = symbol === 'BTC-USD'
            return {
              symbol: bitmexCode(symbol),
              rootSymbol: isInverse ? 'XBT' : baseOf(symbol),
              state: 'Open',
              typ: 'FFWCSX',
              underlying: isInverse ? 'XBT' : baseOf(symbol),
              quoteCurrency: isInverse ? 'USD' : 'USDT',
              settlCurrency: isInverse ? 'XBt' : 'USDt',
              isInverse,
              isQuanto: false,
              ...(isInverse ? {} : { underlyingToPositionMultiplier: 1 / BITMEX_CONTRACT }),
              fundingTimestamp: iso(next),
              fundingInterval: iso(Date.UTC(2000, 0, 1) / 1000 + hours * 3600),
              fundingRate: rate,
              indicativeFundingRate: rate,
              volume24h: 40_000_000,
              turnover24h: 4_000_000_000,
              foreignNotional24h: 40_000_000,
              openInterest: 300_000_000,
              markPrice: markOf('bitmex', view, symbol),
              indicativeSettlePrice: spotOf(view, symbol),
              timestamp: new Date(view.dataEnd).toISOString(),
            }
          }),
        ),
      ),
      route(
        'settled',
        /^\/api\/v1\/funding$/,
        (request, view, symbol) => {
          const limit = Math.min(500, number(request, 'count', 100))
          const time = (name: string, fallback: number): number => {
            const written = request.query.get(name)
            return written === null ? fallback : Date.parse(written)
          }
          const end = time('endTime', view.now)
          const rows = settled('bitmex', view, symbol, time('startTime', end - limit * 8 * 3_600_000), end)
          const ordered = request.query.get('reverse') === 'true' ? rows.toReversed() : rows
          return list(
            ordered.slice(0, limit).map(({ time: at, rate }) => ({
              timestamp: iso(at),
              symbol: bitmexCode(symbol),
              fundingInterval: iso(Date.UTC(2000, 0, 1) / 1000 + funding.hours('bitmex', symbol) * 3600),
              fundingRate: rate,
              fundingRateDaily: rate * 3,
            })),
          )
        },
        bySymbol(({ query }) => query.get('symbol')?.replace(/USDT?$/, '') ?? null),
      ),
      route(
        'book',
        /^\/api\/v1\/orderBook\/L2$/,
        (_, view, symbol) => {
          const { bids, asks } = view.book(symbol, 100)
          const side = (levels: typeof bids, name: string) =>
            levels.map(([at, quantity], i) => ({
              symbol: bitmexCode(symbol),
              id: i,
              side: name,
              // Dollars of the inverse contract.
              size: Math.round(symbol === 'BTC-USD' ? quantity * at : quantity / BITMEX_CONTRACT),
              price: Number(price(at)),
            }))
          return list([...side(asks, 'Sell'), ...side(bids, 'Buy')])
        },
        bySymbol(({ query }) => query.get('symbol')?.replace(/USDT?$/, '') ?? null),
      ),
    ],
  }

  return [binance, bybit, okx, hyperliquid, dydx, kraken, gate, bitmex]
}
