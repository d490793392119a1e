import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Ask, NotFound, Unavailable } from 'tollgate/plugin'
import type { MarketClasses } from '../../../plugins/cost/market-classes.ts'
import { gatherInputs, type MarketInputs, requireAgreement } from '../../../plugins/cost/market-inputs.ts'
import { createBarHistory } from '../../../plugins/cost/bar-history.ts'
import { createErrorHistory } from '../../../plugins/cost/error-history.ts'
import funding from '../../../plugins/funding/index.ts'
import { PerpetualBookStore } from '../../../plugins/funding/perpetual-books.ts'
import { createRateStore } from '../../../plugins/funding/rate-store.ts'
import market from '../../../plugins/market/index.ts'
import { openPluginHost, type PluginHostOptions, type PluginHost } from '../plugin-host.ts'

const root = resolve(import.meta.dirname, '../../..')
const settingsOf = (name: string) =>
  (JSON.parse(readFileSync(join(root, `catalog/${name}.json`), 'utf8')) as { settings: Record<string, unknown> })
    .settings
const classes = settingsOf('cost')['classes'] as MarketClasses

/** Tuesday 2026-11-17, 15:00 UTC: 10:00 in New York. */
const NOW = Date.UTC(2026, 10, 17, 15) / 1000
const HOUR = 3600
const DAY = 86_400

/** A catalog without funding rates, and one with them. */
const NO_FUNDING = { operations: new Map() }
const FUNDING = { operations: new Map([['getPerpetualBook', {} as never]]) }

describe('the inputs of a cost estimate', () => {
  let host: PluginHost
  /** The product that has order books of perpetuals, and its database, if a test has one. */
  let contracts: PluginHost | null = null
  let now = NOW

  const openHost = async (options: Omit<PluginHostOptions, 'now'> = {}): Promise<void> => {
    host = await openPluginHost([{ plugin: market, settings: settingsOf('market') }], {
      now: () => new Date(now * 1000),
      ...options,
    })
    if (options.dataMode === 'replay') await host.run('load')
  }
  const inputsOf = (symbol: string, at = now): Promise<MarketInputs> => {
    const ask: Ask = (id, ...[input]) =>
      (id === 'getPerpetualBook' ? contracts! : host).call(id as never, (input as { query: object }).query, {
        asOf: new Date(at * 1000),
      })
    const catalog = contracts === null ? NO_FUNDING : FUNDING
    return gatherInputs(ask, symbol, at, {
      classes,
      history: createBarHistory(),
      errors: createErrorHistory(() => now),
      catalog,
    })
  }
  const openFunding = async (dataMode: 'sample' | 'online'): Promise<PluginHost> => {
    const settings = { keep_hours: 6 }
    contracts = await openPluginHost([{ plugin: funding, settings }], { dataMode, now: () => new Date(now * 1000) })
    return contracts
  }
  afterEach(async () => {
    now = NOW
    await host.stop()
    await contracts?.stop()
    contracts = null
  })

  it('come from the book, if there is one, and from ten days of minute bars', async () => {
    await openHost()
    const inputs = await inputsOf('btcusdt')
    expect(inputs.symbol).to.equal('BTC-USD')
    expect(inputs.sources).to.deep.equal({ price: 'book', spread: 'book', volatility: 'bars_1m', volume: 'bars_1m' })
    expect(inputs.bars).to.include({ count: 14_400, from: NOW - 10 * DAY, to: NOW })
    expect(inputs.inputs.spreadBps).to.equal(
      (1e4 * (inputs.book!.asks[0]![0] - inputs.book!.bids[0]![0])) / inputs.price!,
    )
    expect(inputs).to.include({ newest: NOW, age: 0, isStale: false, className: 'spot' })
  })

  it('contain nothing later than the requested time', async () => {
    await openHost()
    const before = await inputsOf('ETH-USD', NOW - 3 * HOUR - 17)
    expect(before.newest).to.equal(NOW - 3 * HOUR - 60)
    now = NOW - 3 * HOUR - 17
    expect(await inputsOf('ETH-USD')).to.deep.equal(before)
  })

  it('come from complete sessions for an equity, with a spread of at least a cent', async () => {
    await openHost()
    const open = await inputsOf('SPY')
    expect(open.sources).to.deep.equal({
      price: 'bars_1m',
      spread: 'bars_1m',
      volatility: 'bars_1m',
      volume: 'bars_1m',
    })
    expect(open.bars).to.include({ count: 3900, to: Date.UTC(2026, 10, 16, 21) / 1000 })
    expect(open.tickBps).to.be.closeTo(100 / open.price!, 1e-12)
    expect(open.inputs.spreadBps).to.be.at.least(open.tickBps!)
    expect(open.inputs.dayMinutes).to.equal(390)
  })

  it('take the price and age of an equity from the running session', async () => {
    await openHost()
    const [now, before] = [await inputsOf('SPY'), await inputsOf('SPY', NOW - 600)]
    expect(now).to.include({ newest: NOW, age: 0, isStale: false })
    expect(before).to.include({ newest: NOW - 600, age: 0, isStale: false })
    expect(now.price).not.to.equal(before.price)
    expect(now.bars).to.include({ to: before.bars!.to, sigmaDaily: before.bars!.sigmaDaily })
  })

  it('have the age at the last close for a closed market', async () => {
    await openHost()
    now = Date.UTC(2026, 10, 15, 12) / 1000
    const sunday = await inputsOf('AAPL')
    expect(sunday.session).to.include({ is_open: false, next_open: Date.UTC(2026, 10, 16, 14, 30) / 1000 })
    expect(sunday).to.include({ age: 0, isStale: false })
  })

  it('come from the spot market for a perpetual without an order book, with the class of perpetuals', async () => {
    await openHost()
    const [spot, perpetual] = [await inputsOf('BTC-USD'), await inputsOf('btcusdt_perp')]
    expect(spot.inputs.errors!.at('buy', 1e6)).to.include({ cases: 180 })
    // The errors of the spot market say nothing of the contract.
    const inputs = { ...spot.inputs, errors: null }
    expect(perpetual).to.deep.equal({ ...spot, inputs, symbol: 'BTC-USD-PERP', className: 'perpetual' })
    const failure = await inputsOf('SPY-PERP').catch((error: unknown) => error)
    expect((failure as Error).message).to.equal('symbol: SPY has no perpetual')
  })

  it('come from the order book of a perpetual, and from the bars of its spot market', async () => {
    await openHost()
    await openFunding('sample')
    const [spot, perpetual] = [await inputsOf('BTC-USD'), await inputsOf('BTC-PERP')]
    const { bids, asks, ...book } = perpetual.book!
    const middle = (bids[0]![0] + asks[0]![0]) / 2
    expect(book.instrument).to.match(/BTC/)
    expect(book.time).to.equal(Math.floor(NOW / 300) * 300)
    expect(perpetual).to.include({ price: middle, tickBps: null, symbol: 'BTC-USD-PERP', className: 'perpetual' })
    expect(perpetual.sources).to.deep.equal(spot.sources)
    expect(perpetual.bars).to.deep.equal(spot.bars)
    expect(perpetual.inputs.book).to.equal(perpetual.book)
    expect(perpetual.inputs.spreadBps).to.be.closeTo((1e4 * (asks[0]![0] - bids[0]![0])) / middle, 1e-9)
    expect(spot.book, 'the spot market keeps its own').to.not.have.property('instrument')
  })

  it('have an order book of a perpetual while it is known and not older than five minutes', async () => {
    await openHost()
    const { db } = await openFunding('online')
    const rate = { instrument: 'PF_XBTUSD', symbol: 'BTC', quote: 'USD', settle: 'USD', contract: 'linear', rate: '0.0001', intervalHours: 1, intervalSource: 'published', kind: 'predicted', predictedRate: null, nextFunding: null, markPrice: 98_000, indexPrice: null, observed: NOW } as const // prettier-ignore
    await createRateStore(db).add('kraken', NOW, { rates: [rate], quarantined: [], untold: [] })
    await new PerpetualBookStore(db).add('kraken', 'PF_XBTUSD', NOW + 10, { bids: [[97_999, 1]], asks: [[98_001, 1]] })
    const bookAt = async (at: number) => {
      now = at
      const { book, price, age, isStale } = await inputsOf('BTC-PERP', at)
      return { instrument: book?.instrument ?? null, price, bookAge: at - book!.time, age, isStale }
    }
    expect((await bookAt(NOW + 9)).instrument, 'not read yet').to.equal(null)
    const known = { instrument: 'PF_XBTUSD', price: 98_000, isStale: false }
    expect(await bookAt(NOW + 10)).to.deep.include({ ...known, bookAge: 0 })
    expect(await bookAt(NOW + 310)).to.deep.equal({ ...known, bookAge: 300, age: 300 })
    const { instrument, bookAge, age } = await bookAt(NOW + 311)
    expect(instrument, 'then that of the spot market').to.equal(null)
    expect([bookAge, age]).to.satisfy((ages: number[]) => ages.every((seconds) => seconds < 120))
  })

  it('are refused if the book and the bars are of different prices', async () => {
    await openHost()
    const inputs = await inputsOf('BTC-USD')
    const refused = (lastClose: number, secondsBefore = 0) => {
      const bars = { ...inputs.bars!, lastClose, newest: inputs.newest - secondsBefore }
      return () => requireAgreement({ ...inputs, bars })
    }
    const price = inputs.price!
    for (const times of [0.96, 1, 1.04]) expect(refused(price * times)).to.not.throw()
    for (const times of [1 / 6, 0.94, 1.06, 6])
      expect(refused(price * times)).to.throw(Unavailable, 'in its order book')
    expect(refused(price * 1.06, DAY), 'in a day a price moves').to.not.throw()
    expect(refused(price * 6, 7 * DAY)).to.throw(Unavailable)
  })

  it('are refused for an unknown symbol', async () => {
    await openHost()
    const failure = await inputsOf('DOGE-EUR').catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(NotFound)
    expect((failure as Error).message).to.match(/^symbol: DOGE-EUR is not covered/)
  })

  describe('in a replay', () => {
    let folder: string
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'cost-'))
    })
    afterEach(() => rm(folder, { recursive: true }))

    /** A session in New York with quotes one cent apart, and a cryptocurrency with order books at three times. */
    async function record(): Promise<void> {
      const midnight = Date.UTC(2014, 5, 5)
      const rows = Array.from({ length: 390 }, (_, i) => {
        const [open, close] = [(50 + ((i * 7) % 11) / 100).toFixed(2), (50 + ((i * 7 + 7) % 11) / 100).toFixed(2)]
        const [high, low] = [Math.max(+open, +close) + 0.01, Math.min(+open, +close) - 0.01].map((x) => x.toFixed(2))
        const bid = (+close - 0.01).toFixed(2)
        return [midnight + (570 + i) * 60_000, open, high, low, close, 1000 + i, bid, close].join(',')
      })
      const header = 'timestamp,open,high,low,close,volume,bid_close,ask_close'
      await writeFile(join(folder, 'us_acme_20140605_minute_trades_quotes.csv'), [header, ...rows].join('\n'))
      const minutes = Array.from({ length: 3000 }, (_, i) => {
        const close = 2000 + (i % 9) + (i % 4)
        return [1_723_000_000_000 + i * 60_000, close, close + 3, close - 3, close, 4].join(',')
      })
      await mkdir(join(folder, 'deep'))
      await writeFile(join(folder, 'deep/ETHUSDT-1m-2024-08.csv'), minutes.join('\n'))
      const snapshots = [0, 30, 60].map((second) => ({
        ts_ms: 1_723_161_254_000 + second * 1000,
        bids: [[2000 + second, 1]],
        asks: [[2001 + second, 1]],
      }))
      await writeFile(
        join(folder, 'deep/binance_spot_ethusdt_20240808.json'),
        JSON.stringify({ meta: { quantity_unit: 'base units' }, snapshots }),
      )
      const crossed = { ...snapshots[0], bids: [[2002, 1]] }
      await writeFile(join(folder, 'kraken_spot_acme_20240808.json'), JSON.stringify({ snapshots: [crossed] }))
    }

    it('come from recorded quotes, shifted in time together with the bars', async () => {
      await record()
      await openHost({ dataMode: 'replay', replayDir: folder })
      const inputs = await inputsOf('ACME')
      expect(inputs.sources).to.deep.equal({
        price: 'quotes',
        spread: 'quotes',
        volatility: 'bars_1m',
        volume: 'bars_1m',
      })
      expect(inputs.inputs.spreadBps).to.be.closeTo(100 / 50.05, 0.01)
      expect(inputs.price).to.be.within(49.9, 50.2)
      expect(inputs.newest).to.equal(inputs.bars?.to)
      expect(new Date(inputs.newest * 1000).toISOString()).to.match(/^2026-11-1\dT20:00:00.000Z$/)
      expect(inputs.isStale, 'a recording of one day is over').to.equal(true)
    })

    it('repeat a recorded book in a loop', async () => {
      await record()
      await openHost({ dataMode: 'replay', replayDir: folder })
      const first = await inputsOf('ETH-USD')
      expect(first.sources.spread).to.equal('book')
      expect(now - first.book!.time).to.be.within(0, 30)
      const seen = new Set<number>()
      for (let second = 0; second < 90; second += 10) seen.add((await inputsOf('ETH-USD', NOW + second)).price!)
      expect(seen).to.deep.equal(new Set([2000.5, 2030.5, 2060.5]))
      const query = { symbol: 'ETH-USD', venue: 'binance', after: 0 }
      const { pairs } = await host.call('getBookPairs', query)
      const recorded = [0, 30].map((second) => 1_723_161_254 + second)
      expect(pairs.map(({ first }) => first.time), 'each once, when it was recorded').to.deep.equal(recorded) // prettier-ignore
      expect((await host.call('getBookPairs', { ...query, after: recorded[1] })).pairs).to.deep.equal([])
    })

    it('have a recorded book at its own time if the replay is frozen', async () => {
      await record()
      const at = 1_723_161_300
      now = at
      await openHost({ dataMode: 'replay', replayDir: folder, replayShift: 'frozen:2024-08-08T23:55:00Z' })
      expect((await inputsOf('ETH-USD')).price).to.equal(2030.5)
      const pairs = async (seconds: number) => {
        const query = { symbol: 'ETH-USD', venue: 'binance', after: 0 }
        return (await host.call('getBookPairs', query, { asOf: new Date((1_723_161_254 + seconds) * 1000) })).pairs
      }
      expect(await pairs(29)).to.deep.equal([])
      expect((await pairs(30)).map(({ later }) => later.bids[0]![0])).to.deep.equal([2030])
      now = at + 3600
      const later = await inputsOf('ETH-USD')
      expect(later.sources.spread, 'an hour later the book is too old').to.equal('bars_1m')
    })
  })
})
