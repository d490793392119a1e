import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { walkBook } from '../../../plugins/lib/quant/order-book.ts'
import { migrations } from '../../../plugins/market/bar-store.ts'
import market from '../../../plugins/market/index.ts'
import { KeptBooks } from '../../../plugins/market/order-books/kept-books.ts'
import type { BookSnapshot } from '../../../plugins/market/order-books/order-book-source.ts'
import { makeBook } from '../../../plugins/market/order-books/sample-books.ts'
import { type CoveredSymbol, sampledSymbols } from '../../../plugins/market/symbols.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { openVenueKit, SPOT_VENUES, type VenueKit } from '../../venues/venue-kit.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'

const catalog = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../../catalog/market.json'), 'utf8')) as {
  settings: Record<string, unknown> & { symbols: CoveredSymbol[] }
}
const BTC = sampledSymbols(catalog.settings.symbols)[0]!
const DAY = 86_400
const START = Date.UTC(2026, 2, 2, 12) / 1000
const SIGNAL = new AbortController().signal
const ALL = { from: 0, to: Number.MAX_SAFE_INTEGER, limit: 1000 }

const bookAt = (time: number, venue = 'coinbase'): BookSnapshot => ({ ...makeBook(BTC, time, 90_000), venue, time })

for (const [name, open] of Object.entries(DATABASES))
  describe(`kept order books in ${name}`, () => {
    let store: TestDatabase
    let books: KeptBooks
    beforeEach(async function () {
      const opened = await open()
      if (!opened) this.skip()
      store = opened
      await migrate(store.db, 'market', migrations)
      books = new KeptBooks(store.db)
    })
    afterEach(() => store?.drop())

    const keep = (time: number, venue?: string, symbol = 'BTC-USD'): Promise<boolean> =>
      books.keep(symbol, bookAt(time, venue))
    const times = async (symbol = 'BTC-USD'): Promise<number[]> =>
      (await books.read(symbol, ALL)).map(({ time }) => time - START)

    it('are two of every five minutes and symbol, half a minute apart', async () => {
      for (let at = 0; at < 900; at += 10) {
        await keep(START + at)
        await keep(START + at + 5, 'kraken', 'ETH-USD')
      }
      expect(await times()).to.deep.equal([0, 20, 300, 320, 600, 620])
      expect(await times('ETH-USD')).to.deep.equal([5, 25, 305, 325, 605, 625])
    })

    it('have the second of a pair from the venue of the first, and only within a minute', async () => {
      await keep(START)
      expect(await keep(START + 30, 'kraken')).to.equal(false)
      expect(await keep(START + 61)).to.equal(false)
      expect(await times()).to.deep.equal([0])
    })

    it('are read as pairs of one venue, of the last seven days and some at a time', async () => {
      const at = (days: number, seconds: number): number => START + days * DAY + seconds
      const rows = Array.from({ length: 150 }, (_, i) => [at(8, 300 * i), at(8, 300 * i + 30)]).flat()
      for (const t of [at(0, 0), at(0, 30), ...rows]) await keep(t, t > at(8, 44_000) ? 'kraken' : 'coinbase')
      const firsts = async (venue: string, asOf: number): Promise<number[]> => {
        const found: number[] = []
        for (let after = 0; ;) {
          const pairs = await books.pairs('BTC-USD', { venue, after }, asOf)
          for (const { first, later } of pairs) {
            expect(later.time - first.time).to.equal(30)
            found.push(first.time)
          }
          const last = pairs.at(-1)
          if (!last) return found
          after = last.first.time
        }
      }
      const expected = rows.filter((_, i) => i % 2 === 0)
      expect(await firsts('coinbase', at(9, 0))).to.deep.equal(expected.filter((t) => t <= at(8, 44_000)))
      expect(await firsts('kraken', at(9, 0))).to.deep.equal(expected.filter((t) => t > at(8, 44_000)))
      expect(await firsts('coinbase', at(8, 329)), 'the later book is not known yet').to.deep.equal([at(8, 0)])
      expect(await firsts('coinbase', at(1, 0))).to.deep.equal([at(0, 0)])
    })

    it('are the books that were given, thinned', async () => {
      const full = bookAt(START)
      await keep(START)
      const [kept] = await books.read('BTC-USD', ALL)
      expect([kept!.venue, kept!.time, kept!.asks[0]![0]]).to.deep.equal(['coinbase', START, full.asks[0]![0]])
      expect(kept!.asks.length).to.be.below(full.asks.length / 3)
      const cost = (book: BookSnapshot): number => walkBook(book, 'buy', 1e6)!.costBps
      expect(cost(kept!) / cost(full)).to.be.closeTo(1, 0.01)
    })

    it('neither repeat nor miss a book after a restart, which reads what is due from the database', async () => {
      await keep(START)
      const restarted = new KeptBooks(store.db)
      expect(await restarted.keep('BTC-USD', bookAt(START + 10))).to.equal(false)
      expect(await restarted.isLaterDue('BTC-USD', START + 30)).to.equal(true)
      expect(await restarted.keep('BTC-USD', bookAt(START + 30))).to.equal(true)
      expect(await times()).to.deep.equal([0, 30])
    })

    it('take nothing that is not later than the newest one, after a clock that went back', async () => {
      await keep(START)
      expect(await keep(START - 3600)).to.equal(false)
      expect(await keep(START)).to.equal(false)
      expect(await times()).to.deep.equal([0])
    })

    it('are deleted after exactly 30 days behind the newest one, in batches, whatever the clock says', async () => {
      const rows = Array.from({ length: 1200 }, (_, i) => ({
        symbol: 'OLD-USD',
        t: START - 30 * DAY - 1200 + i,
        venue: 'kraken',
        book: Buffer.from([1]),
      }))
      await store.db.batchInsert('market_kept_books', rows, 100)
      await keep(START - 30 * DAY)
      await keep(START)
      const deletes: number[] = []
      store.db.on('query-response', (response: unknown, { method }: { method?: string }) => {
        if (method === 'del') deletes.push(Number(response))
      })
      expect(await books.prune(SIGNAL)).to.equal(1200)
      expect(deletes).to.deep.equal([500, 500, 200])
      expect(await times()).to.deep.equal([-30 * DAY, 0])
      expect(await times('OLD-USD')).to.deep.equal([])
    })

    it('are deleted if their own minute never traded near their price', async () => {
      await keep(START)
      await keep(START + 30)
      await keep(START + 300)
      const minutes = new Map([
        [START, { low: 80_000, high: 80_100 }],
        [START + 300, { low: 89_900, high: 90_100 }],
      ])
      expect(await books.refute('BTC-USD', { from: START, minutes, tolerance: 0.005 })).to.equal(2)
      expect(await times()).to.deep.equal([300])
    })
  })

describe('the order books that venues answer', () => {
  let kit: VenueKit
  let host: PluginHost
  let skew = 0
  const openHost = (db?: PluginHost['db']): Promise<PluginHost> => {
    const venues = Object.fromEntries(SPOT_VENUES.map((name) => [name, { url: kit.spotUrls[name], per_second: 1000 }]))
    const symbols = catalog.settings.symbols.filter(({ symbol }) => ['BTC-USD', 'ETH-USD'].includes(symbol))
    const history_start = new Date(kit.clock.now() - 3_600_000).toISOString()
    return openPluginHost(
      [{ plugin: market, settings: { ...catalog.settings, symbols, venues, request_seconds: 1, history_start } }],
      { dataMode: 'online', now: () => new Date(kit.clock.now() + skew * 1000), ...(db ? { db } : {}) },
    )
  }
  beforeEach(async () => {
    skew = 0
    kit = await openVenueKit({ start: START * 1000 + 5000 })
    host = await openHost()
    await host.run('poll')
    await host.run('backfill')
  })
  afterEach(async () => {
    await host.stop()
    await kit.close()
  })

  const pass = async (seconds: number): Promise<void> => {
    for (let at = 0; at < seconds; at += 30) {
      if (at % 60 === 0) await host.run('poll')
      await host.run('depth')
      kit.clock.advance(30)
    }
  }
  const store = () => new KeptBooks(host.db)
  const kept = (symbol = 'BTC-USD') => store().read(symbol, ALL)
  const bookRequests = () => kit.requests().filter(({ url }) => url.startsWith('/products/BTC-USD/book'))

  it('are asked for once a minute, and half a minute after each one that is kept first', async () => {
    await pass(600)
    const first = bookRequests()[0]!.at / 1000
    expect(bookRequests().map(({ at }) => at / 1000 - first)).to.deep.equal([
      0, 30, 90, 150, 210, 270, 330, 360, 420, 480, 540,
    ]) // prettier-ignore
    expect((await kept()).map(({ time }) => time - first)).to.deep.equal([0, 30, 330, 360])
    expect((await kept('ETH-USD')).length).to.be.within(3, 4)
  })

  it('are kept by one that goes on where another ended, without a hole or a double', async () => {
    await pass(30)
    const { db } = host
    host = await openHost(db)
    await pass(360)
    const all = (await kept()).map(({ time }) => time)
    expect(all.map((time) => time - all[0]!)).to.deep.equal([0, 30, 330, 360])
    await host.stop()
    host = await openHost()
    await db.destroy()
  })

  it('are not kept while our clock and that of the venue differ', async () => {
    await pass(60)
    const before = (await kept()).length
    skew = 86_400
    await pass(360)
    skew = -86_400
    await pass(360)
    skew = 0
    expect((await kept()).length).to.equal(before)
    await pass(60)
    expect((await kept()).length).to.be.greaterThan(before)
  })

  it('are not kept from a venue whose price nothing confirms, or that repeats its book', async () => {
    for (const venue of SPOT_VENUES) kit.faults.start('frozen', { venue, route: 'book' })
    await pass(360)
    const all = await kept()
    // The first answer of a frozen venue is a book like any other.
    expect(all.length).to.be.at.most(SPOT_VENUES.length)
    expect(new Set(all.map(({ bids, asks }) => JSON.stringify([bids, asks]))).size).to.equal(all.length)
  })

  it('are deleted when their minute refutes them', async () => {
    // Within what the last minute allows, and beyond what the minute itself turns out to be.
    await pass(30)
    const [book] = await kept()
    const tooHigh = { ...book!, time: book!.time + 300 }
    const moved = tooHigh.asks.map(([price, size]) => [price * 1.009, size] as const)
    const bids = tooHigh.bids.map(([price, size]) => [price * 1.009, size] as const)
    await store().keep('BTC-USD', { ...tooHigh, asks: moved, bids })
    await pass(420)
    await host.run('kept-books')
    const times = (await kept()).map(({ time }) => time)
    expect(times).to.include(book!.time)
    expect(times).to.not.include(tooHigh.time)
  })
})
