import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { joinQuotes } from '../../../plugins/market/order-books/recorded-books.ts'
import { makeBook } from '../../../plugins/market/order-books/sample-books.ts'
import market from '../../../plugins/market/index.ts'
import { sessionAt } from '../../../plugins/market/trading-session.ts'
import { type CoveredSymbol, sampledSymbols } from '../../../plugins/market/symbols.ts'
import { isSound, walkBook } from '../../../plugins/lib/quant/order-book.ts'
import { squareRootImpact } from '../../../plugins/lib/quant/market-impact.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'

const START = Date.UTC(2026, 10, 17, 15) / 1000
const catalog = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../../catalog/market.json'), 'utf8')) as {
  settings: { symbols: CoveredSymbol[] }
}
const SAMPLED = sampledSymbols(catalog.settings.symbols)

describe('recorded quotes', () => {
  it('are joined from two files in order of time', () => {
    const count = 200_000
    const quotes = (from: number) => {
      const column = Float64Array.from({ length: count }, (_, i) => from + i)
      return { venue: 'test', time: column, bid: column, ask: column }
    }
    const joined = joinQuotes(quotes(count), quotes(0))
    expect(joined.time).to.have.length(2 * count)
    for (const i of [0, count - 1, count, 2 * count - 1]) expect(joined.bid[i]).to.equal(i)
  })
})

describe('sample order books', () => {
  it('are valid and cost about what the square-root law of impact predicts', () => {
    for (const symbol of SAMPLED.filter(({ session }) => session === '24x7')) {
      const order = { quantity: symbol.turnover / 2000, dailyVolume: symbol.turnover }
      const law = 1e4 * squareRootImpact({ ...order, dailyVolatility: symbol.volatility / Math.sqrt(365) })
      const costs = Array.from({ length: 50 }, (_, i) => {
        const book = makeBook(symbol, START + 60 * i, symbol.price)
        expect(isSound(book), symbol.symbol).to.equal(true)
        return walkBook(book, i % 2 === 0 ? 'buy' : 'sell', order.quantity)?.costBps ?? NaN
      })
      const mean = costs.reduce((sum, cost) => sum + cost, 0) / costs.length
      expect(mean / law, symbol.symbol).to.be.within(0.6, 1.7)
    }
  })

  it('are the same for the same minute and differ between minutes', () => {
    const [symbol] = SAMPLED
    expect(makeBook(symbol!, START, 90_000)).to.deep.equal(makeBook(symbol!, START, 90_000))
    expect(makeBook(symbol!, START + 60, 90_000).asks).to.not.deep.equal(makeBook(symbol!, START, 90_000).asks)
  })
})

describe('order books from the venues', () => {
  let server: Server
  let host: PluginHost
  let clock: number
  let requests: string[]
  let answers: Record<string, { status?: number; body: unknown }>

  beforeEach(async () => {
    clock = START
    requests = []
    answers = {
      coinbase: { body: { bids: [['100.00', '2', 3]], asks: [['100.02', '1', 1], ['100.05', '4', 2]] } },
      binance_us: { body: { lastUpdateId: 1, bids: [['99.90', '2']], asks: [['99.91', '1']] } },
      bitstamp: { body: { timestamp: '1', bids: [['99.95', '2']], asks: [['99.96', '1']] } },
    } // prettier-ignore
    server = createServer((request, response) => {
      const path = request.url ?? ''
      const venue = path.startsWith('/products') ? 'coinbase' : path.startsWith('/api/v3') ? 'binance_us' : 'bitstamp'
      requests.push(path)
      const { status = 200, body } = answers[venue]!
      response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '90' }).end(JSON.stringify(body))
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    host = await openHost({})
  })
  afterEach(async () => {
    await host.stop()
    await new Promise((closed) => server.close(closed))
  })

  const openHost = async (changes: object): Promise<PluginHost> => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const venues = { coinbase: 'BTC-USD', binance_us: 'BTCUSD', bitstamp: 'btcusd' }
    const symbols = [{ ...catalog.settings.symbols[0]!, venues }]
    const settings = { symbols, venues: { coinbase: { url }, binance_us: { url }, bitstamp: { url } }, ...changes }
    return openPluginHost([{ plugin: market, settings }], { dataMode: 'online', now: () => new Date(clock * 1000) })
  }
  const book = async (asOf = clock) =>
    (await host.call('getBook', { symbol: 'BTC-USD' }, { asOf: new Date(asOf * 1000) })).book
  const quotes = async (from: number) => (await host.call('getQuotes', { symbol: 'BTC-USD', from })).quotes

  it('come from the first venue that another one confirms, as numbers', async () => {
    await host.run('depth')
    expect(requests).to.deep.equal(['/products/BTC-USD/book?level=2', '/api/v3/depth?symbol=BTCUSD&limit=500'])
    expect(await book()).to.deep.equal({
      venue: 'coinbase',
      time: START,
      bids: [[100, 2]],
      asks: [
        [100.02, 1],
        [100.05, 4],
      ],
    })
  })

  it('are visible from their arrival on, not before', async () => {
    expect(await book()).to.equal(null)
    await host.run('depth')
    expect(await book(START - 1)).to.equal(null)
    clock += 60
    answers['coinbase'] = { body: { bids: [['101', '1']], asks: [['101.5', '1']] } }
    answers['binance_us'] = { body: { bids: [['101', '1']], asks: [['101.2', '1']] } }
    await host.run('depth')
    expect((await book())?.bids[0]).to.deep.equal([101, 1])
    expect((await book(clock - 1))?.bids[0]).to.deep.equal([100, 2])
  })

  it('leave their best prices as quotes for an hour', async () => {
    for (const at of [0, 60, 120, 3690]) {
      clock = START + at
      answers['coinbase'] = { body: { bids: [['100', `1.${at}`]], asks: [['100.02', '1']] } }
      answers['binance_us'] = { body: { bids: [['100', `1.${at}`]], asks: [['100.02', '1']] } }
      await host.run('depth')
    }
    expect([...(await quotes(START))!.time]).to.deep.equal([START + 120, START + 3690])
    expect([...(await quotes(START + 121))!.ask]).to.deep.equal([100.02])
  })

  it('come from the second venue while the first one fails, and from the first again after its Retry-After', async () => {
    answers['coinbase'] = { status: 429, body: { message: 'slow down' } }
    await host.run('depth')
    expect((await book())?.venue).to.equal('binance_us')
    answers['coinbase'] = { body: { bids: [['100', '1']], asks: [['100.1', '1']] } }
    clock += 60
    await host.run('depth')
    expect((await book())?.venue).to.equal('binance_us')
    answers['binance_us'] = { body: { lastUpdateId: 2, bids: [['99.90', '3']], asks: [['99.91', '1']] } }
    clock += 60
    await host.run('depth')
    expect((await book())?.venue).to.equal('coinbase')
  })

  it('of pairs that are not quoted in dollars are not read, also if no other venue answers', async () => {
    await host.stop()
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const venues = { coinbase: 'BTC-USD', bitstamp: 'btcusd', binance: 'BTCUSDT' }
    host = await openHost({
      symbols: [{ ...catalog.settings.symbols[0]!, venues }],
      venues: { coinbase: { url }, bitstamp: { url }, binance: { url } },
    })
    answers['bitstamp'] = { status: 500, body: {} }
    answers['coinbase'] = { status: 500, body: {} }
    await host.run('depth')
    expect(requests.map((path) => path.split('/')[1])).to.deep.equal(['products', 'api'])
    expect(requests.join()).not.to.include('USDT')
    expect(await book()).to.equal(null)
  })

  it('are rejected if they are crossed, one-sided or malformed', async () => {
    delete answers['binance_us']
    answers['bitstamp'] = { status: 404, body: {} }
    for (const body of [
      { bids: [['5', '1']], asks: [['4', '1']] },
      { bids: [], asks: [['4', '1']] },
      { error: 'x' },
      [],
    ]) {
      answers['coinbase'] = { body }
      answers['binance_us'] = { body }
      clock += 60
      await host.run('depth')
      expect(await book(), JSON.stringify(body)).to.equal(null)
    }
  })

  it('can be switched off in the settings', async () => {
    await host.stop()
    host = await openHost({ books: false })
    await host.run('depth')
    expect(requests).to.deep.equal([])
  })
})

describe('a trading session', () => {
  const at = (time: string) => sessionAt('us_equity', Date.parse(time) / 1000)
  const seconds = (time: string): number => Date.parse(time) / 1000

  it('opens and closes with the New York Stock Exchange', () => {
    expect(at('2026-11-20T15:00:00Z')).to.deep.equal({
      is_open: true,
      opened: seconds('2026-11-20T14:30:00Z'),
      closes: seconds('2026-11-20T21:00:00Z'),
      next_open: null,
    })
    expect(at('2026-11-20T21:00:00Z')).to.deep.equal({
      is_open: false,
      opened: seconds('2026-11-20T14:30:00Z'),
      closes: seconds('2026-11-20T21:00:00Z'),
      next_open: seconds('2026-11-23T14:30:00Z'),
    })
    // The day after Thanksgiving ends at one.
    expect(at('2026-11-27T18:30:00Z')).to.include({ is_open: false, closes: seconds('2026-11-27T18:00:00Z') })
    // Summer time.
    expect(at('2026-07-01T13:29:59Z')).to.include({ is_open: false, next_open: seconds('2026-07-01T13:30:00Z') })
  })

  it('never ends in a market that trades around the clock', () => {
    expect(sessionAt('24x7', START)).to.deep.equal({ is_open: true, opened: null, closes: null, next_open: null })
  })
})
