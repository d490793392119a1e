import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { readBook } from '../../../plugins/funding/book-polls.ts'
import type { FundingRate, VenueName } from '../../../plugins/funding/funding-rate.ts'
import funding from '../../../plugins/funding/index.ts'
import { PerpetualBookStore } from '../../../plugins/funding/perpetual-books.ts'
import { migrations } from '../../../plugins/funding/rate-store.ts'
import { VENUES } from '../../../plugins/funding/venues/funding-venues.ts'
import { DATABASES } from '../../contracts/databases.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import { AT, type FakeVenues, openVenues } from './fake-venues.ts'

/** Two levels a side around 98,000: 2 coins at the best price, 5 behind it. What each venue sends of that. */
const BOOKS: Readonly<Record<VenueName, { readonly path: RegExp; readonly answer: unknown; readonly coins?: number }>> = {
  binance: {
    path: /^\/fapi\/v1\/depth\?symbol=BTCUSDT&limit=100$/,
    answer: { lastUpdateId: 1, bids: [['97999.0', '2.000'], ['97950.0', '5.000']], asks: [['98001.0', '2.000'], ['98050.0', '5.000']] },
  },
  bybit: {
    path: /^\/v5\/market\/orderbook\?category=linear&symbol=BTCUSDT&limit=200$/,
    answer: { retCode: 0, result: { s: 'BTCUSDT', b: [['97999', '2'], ['97950', '5']], a: [['98001', '2'], ['98050', '5']], ts: AT * 1000 } },
  },
  okx: {
    path: /^\/api\/v5\/market\/books\?instId=BTC-USDT-SWAP&sz=200$/,
    answer: { code: '0', data: [{ bids: [['97999', '200', '0', '3'], ['97950', '500', '0', '3']], asks: [['98001', '200', '0', '3'], ['98050', '500', '0', '3']], ts: String(AT * 1000) }] },
    coins: 0.01,
  },
  hyperliquid: {
    path: /^\/info$/,
    answer: { coin: 'BTC', time: AT * 1000, levels: [[{ px: '97999', sz: '2', n: 3 }, { px: '97950', sz: '5', n: 3 }], [{ px: '98001', sz: '2', n: 3 }, { px: '98050', sz: '5', n: 3 }]] },
  },
  dydx: {
    path: /^\/v4\/orderbooks\/perpetualMarket\/BTC-USD$/,
    answer: { bids: [{ price: '97999', size: '2' }, { price: '97950', size: '5' }], asks: [{ price: '98001', size: '2' }, { price: '98050', size: '5' }] },
  },
  kraken: {
    path: /^\/derivatives\/api\/v3\/orderbook\?symbol=PF_XBTUSD$/,
    answer: { result: 'success', orderBook: { bids: [[97_999, 2], [97_950, 5]], asks: [[98_001, 2], [98_050, 5]] }, serverTime: new Date(AT * 1000).toISOString() },
  },
  gate: {
    path: /^\/api\/v4\/futures\/usdt\/order_book\?contract=BTC_USDT&limit=100$/,
    answer: { current: AT, update: AT, bids: [{ p: '97999', s: 20_000 }, { p: '97950', s: 50_000 }], asks: [{ p: '98001', s: 20_000 }, { p: '98050', s: 50_000 }] },
    coins: 0.0001,
  },
  bitmex: {
    path: /^\/api\/v1\/orderBook\/L2\?symbol=XBTUSDT&depth=100$/,
    // Sells come first, the highest first.
    answer: [['Sell', 98_050, 5_000_000], ['Sell', 98_001, 2_000_000], ['Buy', 97_999, 2_000_000], ['Buy', 97_950, 5_000_000]].map(([side, price, size]) => ({ symbol: 'XBTUSDT', side, price, size })),
    coins: 1e-6,
  },
} // prettier-ignore

const rateOf = (instrument: string, markPrice: number | null = 98_000): FundingRate =>
  ({ instrument, markPrice, indexPrice: null }) as FundingRate

describe('the order book of a perpetual contract', () => {
  for (const [name, { answer, coins = 1 }] of Object.entries(BOOKS) as [VenueName, (typeof BOOKS)[VenueName]][])
    it(`is read in coins from ${name}`, () => {
      const { bids, asks } = readBook(VENUES[name], rateOf('BTC'), coins, answer)
      const rounded = [...bids, ...asks].map(([price, size]) => [price, Number(size.toPrecision(9))])
      expect(rounded).to.deep.equal([[97_999, 2], [97_950, 5], [98_001, 2], [98_050, 5]]) // prettier-ignore
    })

  it('is refused if it is crossed, empty, an error, or far from the mark price', () => {
    const read =
      (payload: unknown, mark = 98_000) =>
      () =>
        readBook(VENUES.binance, rateOf('BTC', mark), 1, payload)
    expect(read({ bids: [['98002', '1']], asks: [['98001', '1']] })).to.throw('crossed')
    expect(read({ bids: [], asks: [['98001', '1']] })).to.throw('empty')
    expect(read({ bids: [['98000', 'x']], asks: [['98001', '1']] })).to.throw('crossed')
    expect(read({ code: -1121, msg: 'Invalid symbol.' })).to.throw('no list at bids')
    expect(read(BOOKS.binance.answer, 100_500)).to.throw('a mark price of 100500')
  })
})

describe('spreads with order books', () => {
  let venues: FakeVenues
  let host: PluginHost
  let clock: number
  /** Answers that replace those of BOOKS. */
  let answers: Map<VenueName, { status: number; body: unknown }>
  let asked: string[]
  /** A venue that takes a request for a book and never answers. */
  let silent: VenueName | null

  beforeEach(async () => {
    venues = await openVenues()
    clock = AT
    answers = new Map()
    asked = []
    silent = null
    const names = Object.keys(VENUES) as VenueName[]
    const withBooks: typeof fetch = async (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input)
      const venue = names.find((name) => url.href.startsWith(`${venues.urlOf(name)}/`))!
      const path = url.href.slice(venues.urlOf(venue).length)
      if (path.startsWith('/api/v5/public/instruments'))
        return Response.json({ code: '0', data: [{ instId: 'BTC-USDT-SWAP', ctType: 'linear', ctVal: '0.01', ctMult: '1' }] }) // prettier-ignore
      const isBook =
        BOOKS[venue].path.test(path) &&
        (path !== '/info' || (typeof init?.body === 'string' && init.body.includes('l2Book')))
      if (!isBook) return fetch(input, init)
      asked.push(venue)
      if (venue === silent) return new Promise((_, fail) => init?.signal?.addEventListener('abort', () => fail(init.signal!.reason as Error))) // prettier-ignore
      const { status, body } = answers.get(venue) ?? { status: 200, body: BOOKS[venue].answer }
      return new Response(JSON.stringify(body), { status })
    }
    const settings = {
      keep_hours: 6,
      book_symbols: ['BTC'],
      book_request_seconds: 1,
      venues: Object.fromEntries(names.map((name) => [name, { url: venues.urlOf(name) }])),
    }
    host = await openPluginHost([{ plugin: funding, settings }], {
      dataMode: 'online',
      now: () => new Date(clock * 1000),
      fetch: withBooks,
    })
    await host.run('poll')
  })
  afterEach(async () => {
    await host.stop()
    await venues.close()
  })

  const spreads = async (query: object = {}, asOf = clock) =>
    (
      await host.call(
        'getPerpFundingRates',
        { sort: 'symbol', limit: 100, symbol: 'BTC', slippage_bps: 10, ...query },
        { asOf: new Date(asOf * 1000) },
      )
    ).spreads

  it('state what both contracts can trade within a bound, from the newest books', async () => {
    expect((await spreads())[0]!.tradable).to.equal(null)
    await host.run('books')
    clock += 60
    const [spread] = await spreads({ slippage_bps: 1 })
    expect([spread!.long_venue, spread!.short_venue]).to.deep.equal(['bybit', 'okx'])
    // Two coins at 98,001 cost 0.1 bps; up to 1 bp, part of those at 98,050 is bought too.
    const { size_usd, long_usd, short_usd, is_at_least, ...rest } = spread!.tradable!
    const limit = 98_000 * (1 + 1e-4)
    const behind = (2 * limit - 2 * 98_001) / (98_050 - limit)
    expect(long_usd).to.be.closeTo(2 * 98_001 + behind * 98_050, 2)
    expect(short_usd).to.be.closeTo(long_usd, 100)
    expect([size_usd, is_at_least]).to.deep.equal([Math.min(long_usd, short_usd), false])
    expect(rest).to.deep.equal({ slippage_bps: 1, books_age_seconds: 60 })
    const [whole] = await spreads({ slippage_bps: 100 })
    expect(whole!.tradable).to.include({ is_at_least: true, long_usd: Math.floor(2 * 98_001 + 5 * 98_050) })
  })

  it('have none before the books were read, after they are old, or where a venue gives none', async () => {
    clock = AT + 60
    await host.run('books')
    expect((await spreads({}, AT + 59))[0]!.tradable).to.equal(null)
    expect((await spreads())[0]!.tradable).to.not.equal(null)
    clock = AT + 961
    expect((await spreads())[0]!.tradable).to.equal(null)
    answers.set('okx', { status: 404, body: {} })
    await host.run('books')
    expect((await spreads())[0]!.tradable).to.equal(null)
    answers.delete('okx')
    await host.run('books')
    expect((await spreads())[0]!.tradable).to.not.equal(null)
  })

  it('have those of the other venues when one is silent', async () => {
    silent = 'okx'
    await host.run('books')
    expect((await spreads())[0]!.tradable).to.equal(null)
    const rows = (await host.db('funding_books').select('venue').orderBy('venue')) as { venue: string }[]
    expect(rows.map(({ venue }) => venue)).to.deep.equal(['binance', 'bybit', 'dydx', 'hyperliquid', 'kraken'])
  })

  it('are found by the size that they must have', async () => {
    expect(await spreads({ min_size_usd: 1 })).to.deep.equal([])
    await host.run('books')
    expect(await spreads({ min_size_usd: 100_000 })).to.have.length(1)
    expect(await spreads({ min_size_usd: 100_000_000 })).to.deep.equal([])
  })

  it('ask for a book of one linear contract of each venue whose contract size is known', async () => {
    await host.run('books')
    // Gate states no contract size in this answer, and BitMEX has an inverse contract only.
    expect(asked.toSorted()).to.deep.equal(['binance', 'bybit', 'dydx', 'hyperliquid', 'kraken', 'okx'])
  })

  it('leave the rates of a venue alone when its books fail, unless it says that it is asked too often', async () => {
    answers.set('bybit', { status: 500, body: {} })
    answers.set('binance', { status: 429, body: {} })
    await host.run('books')
    const before = venues.requests.length
    clock += 20
    await host.run('poll')
    const polled = venues.requests.slice(before)
    expect(polled.some((request) => request.startsWith('bybit'))).to.equal(true)
    expect(polled.some((request) => request.startsWith('binance'))).to.equal(false)
  })
})

for (const [name, open] of Object.entries(DATABASES))
  describe(`stored order books of perpetual contracts in ${name}`, () => {
    it('are those known at a time, and are forgotten before another, in batches', async function () {
      const database = await open()
      if (!database) this.skip()
      try {
        await migrate(database.db, 'funding', migrations)
        const store = new PerpetualBookStore(database.db)
        const book = (price: number) => ({ bids: [[price - 1, 1] as const], asks: [[price + 1, 1] as const] })
        for (let n = 0; n < 1100; n += 1) await store.add('okx', 'BTC-USDT-SWAP', 1000 + n, book(100 + n))
        expect(await store.last('okx', 'BTC-USDT-SWAP', 999)).to.equal(null)
        expect(await store.last('okx', 'BTC-USDT-SWAP', 1500.5)).to.deep.equal({ time: 1500, book: book(600) })
        await store.forget(2050.5, new AbortController().signal)
        const rows = (await database.db('funding_books').select('known_at').orderBy('known_at')) as { known_at: number }[] // prettier-ignore
        expect(rows.map(({ known_at }) => known_at)).to.deep.equal(Array.from({ length: 50 }, (_, n) => 2050 + n))
      } finally {
        await database.drop()
      }
    })
  })
