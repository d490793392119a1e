/** The regimes of several markets that are collected from scripted venues. */
import { expect } from 'chai'
import { type Freshness, NotFound, Unavailable, type OperationId, type OutputOf } from 'tollgate/plugin'
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import market from '../../../plugins/market/index.ts'
import regime from '../../../plugins/regime/index.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import { until } from '../../support/until.ts'
import { openVenueKit, type VenueKit } from '../../venues/venue-kit.ts'
import { openCollectedMarket, START } from './collected-market.ts'

/** Grades of one market. */
interface Graded {
  readonly live_snapshots: number
  readonly backfilled: { readonly snapshots: number; readonly brier: number }
}

const MARKETS = ['BTC-USD', 'ETH-USD', 'DOGE-USD']

describe('the regime of several collected markets', function () {
  this.timeout(120_000)
  let kit: VenueKit
  let db: OpenDatabase
  let host: PluginHost
  const work = async (): Promise<void> => {
    for (const job of ['poll', 'backfill', ...MARKETS.map((one, i) => (i === 0 ? 'classify' : `classify ${one}`))])
      await host.run(job)
  }
  const pass = async (seconds: number, step = 20): Promise<void> => {
    for (let passed = 0; passed < seconds; passed += step) {
      kit.clock.advance(step)
      await work()
    }
  }
  const current = (symbol?: string): Promise<OutputOf<'getRegimeCurrent'>> =>
    host.call('getRegimeCurrent', symbol === undefined ? {} : { symbol })
  const refusal = (operation: OperationId, query: object): Promise<unknown> =>
    host.call(operation, query).then(
      () => null,
      (error: unknown) => error,
    )
  /** What the gateway compares with `fresh`. */
  const freshness = async (symbol: string): Promise<Freshness> => {
    const ask = (id: OperationId, input: { query: object }) => host.call(id, input.query)
    const asOf = new Date(kit.clock.now())
    const input = { params: {}, query: { symbol }, body: undefined }
    const freshnessOf = async () =>
      host.registrations[0]!.freshness!({ ...input, operation: 'getMarketStatus' }, asOf, {} as never)
    const report = await host.registrations[1]!.freshness!({ ...input, operation: 'getRegimeCurrent' }, asOf, {
      ask,
      freshnessOf,
    } as never)
    return report!
  }
  const sources = async (symbol: string): Promise<number | null> => (await freshness(symbol)).sources

  beforeEach(async () => {
    kit = await openVenueKit({ start: START })
    db = openDatabase({ file: ':memory:' })
    host = await openCollectedMarket({ urls: kit.spotUrls, db, now: () => kit.clock.now(), symbols: MARKETS })
    await work()
  })
  afterEach(async () => {
    await host.stop()
    await db.destroy()
    await kit.close()
  })

  it('is sold by any spelling, and that of the first market without one', async () => {
    await pass(120)
    const [plain, bitcoin, ether] = [await current(), await current('btc/usd'), await current('ethusdt')]
    expect(plain).to.deep.equal(bitcoin)
    expect([plain.symbol, ether.symbol]).to.deep.equal(['BTC-USD', 'ETH-USD'])
    expect(ether.forecast_vol).not.to.equal(plain.forecast_vol)
    const { symbol, snapshots } = await host.call('getRegimeHistory', { symbol: 'doge-usd', limit: 3 })
    expect([symbol, ...snapshots.map((row) => row.symbol)]).to.deep.equal(Array(4).fill('DOGE-USD'))
    const sample = await host.call('getRegimeSample', { symbol: 'ETH' }, { maxFreshnessSeconds: 86_400 })
    expect(sample).to.include({ symbol: 'ETH-USD', delayed_by_seconds: 86_400 })
  })

  it('gives each market the snapshots that it would have alone', async () => {
    const alone = openDatabase({ file: ':memory:' })
    const parts = { urls: kit.spotUrls, now: () => kit.clock.now(), symbols: ['ETH-USD'] }
    const other = await openCollectedMarket({ ...parts, db: alone })
    const workAlone = async (): Promise<void> => {
      for (const job of ['poll', 'backfill', 'classify']) await other.run(job)
    }
    await workAlone()
    await pass(300)
    await workAlone()
    const together = await host.call('getRegimeHistory', { symbol: 'ETH-USD', limit: 10_000 })
    const { snapshots } = await other.call('getRegimeHistory', { limit: 10_000 })
    const sold = (rows: OutputOf<'getRegimeHistory'>['snapshots']) => rows.map(({ origin: _, ...row }) => row)
    expect(sold(together.snapshots)).to.deep.equal(sold(snapshots))
    await other.stop()
    await alone.destroy()
  })

  it('refuses the one that is down, and sells the others', async () => {
    await pass(60)
    for (const venue of ['coinbase', 'kraken', 'bitstamp', 'bitfinex'])
      kit.faults.start('unavailable', { venue, symbol: 'ETH-USD' })
    await pass(420)
    expect(await refusal('getRegimeCurrent', { symbol: 'ETH-USD' })).to.be.instanceOf(Unavailable)
    expect((await current()).data_age_seconds).to.be.below(120)
    expect((await current('DOGE-USD')).data_age_seconds).to.be.below(120)
    expect([await sources('ETH-USD'), await sources('DOGE-USD')]).to.deep.equal([0, 4])
    kit.faults.clear()
    await pass(300)
    expect((await current('ETH-USD')).data_age_seconds).to.be.below(120)
  })

  it('is as fresh as the last bar while its label is repeated for minutes that are held', async () => {
    await pass(60)
    for (const venue of ['coinbase', 'kraken']) kit.faults.start('price_factor', { venue })
    await pass(120)
    const { origin, data_age_seconds: age } = await current()
    expect(origin).to.equal('held')
    const { newest } = await freshness('BTC-USD')
    expect(Math.floor(kit.clock.now() / 1000) - newest!.getTime() / 1000).to.equal(age)
  })

  it('refuses a market that has no regime, and says which have one', async () => {
    const unknown = await refusal('getRegimeCurrent', { symbol: 'SHIB-USD' })
    expect(unknown).to.be.instanceOf(NotFound)
    expect(String(unknown)).to.match(/SHIB-USD is not covered. Covered are BTC-USD, ETH-USD, DOGE-USD/)
    expect(await refusal('getRegimeHistory', { symbol: 'SHIB-USD' })).to.be.instanceOf(NotFound)
  })

  it('refuses a window that starts in the future, and says which end it took', async () => {
    const error = await refusal('getRegimeHistory', { symbol: 'BTC-USD', start: '2099-01-01' })
    const end = new Date(kit.clock.now() + 1000).toISOString().replace(/\.\d+Z$/, 'Z')
    expect(String(error)).to.contain(`query.start: must be before end, which is ${end}`)
  })

  it('says what it holds of each market', async () => {
    await pass(60)
    const { symbols } = await host.call('getRegimeCoverage')
    expect(symbols.map(({ symbol, complete }) => [symbol, complete])).to.deep.equal(MARKETS.map((one) => [one, true]))
    for (const { since, newest, snapshots } of symbols) {
      // The model needs a day and an hour of bars.
      expect(since).to.equal('2026-03-02T13:00:00Z')
      expect(snapshots).to.equal((Date.parse(newest!) - Date.parse(since!)) / 60_000 + 1)
    }
    const { others } = (await host.registrations[1]!.facts!()) as { others: object[] }
    for (const [at, other] of others.entries()) expect(other).to.include(symbols[at + 1])
  })

  it('grades each of them apart, for the statistics and the page about the method', async () => {
    await pass(120)
    const graded = async (): Promise<readonly Graded[]> => {
      const { others, ...main } = (await host.registrations[1]!.facts!()) as unknown as Graded & { others: Graded[] }
      return [main, ...others]
    }
    await until(async () => (await graded()).every((market) => 'graded' in market))
    const counts = await Promise.all(
      MARKETS.map(async (symbol) => {
        const countOf = async (origin: 'live' | 'backfill') =>
          (await host.call('getRegimeHistory', { symbol, origin, limit: 10_000 })).count
        return [await countOf('live'), await countOf('backfill')]
      }),
    )
    const found = await graded()
    expect(found.map((market) => [market.live_snapshots, market.backfilled.snapshots])).to.deep.equal(counts)
    expect(new Set(found.map(({ backfilled }) => backfilled.brier)).size).to.equal(MARKETS.length)
    const { tables } = await host.call('getRegimeMethod')
    expect(tables!.at(-1)!.rows.map((row) => row.slice(0, 3))).to.deep.equal(
      MARKETS.flatMap((symbol, at) => [
        [symbol, 'live', counts[at]![0]],
        [symbol, 'later', counts[at]![1]],
      ]),
    )
  })
})

describe('the regime of a sample', () => {
  it('has one market, and says of the others that they are collected online only', async () => {
    const traits = { session: '24x7', price: 98_000, volatility: 0.5, turnover: 2e9, tick: 0.01, aliases: [] }
    const symbols = ['BTC-USD', 'ETH-USD'].map((symbol) => ({ symbol, name: symbol, ...traits }))
    const settings = { symbol: 'BTC-USD', symbols: ['ETH-USD', 'DOGE-USD'], since: '2025-08-06T12:00:00Z' }
    const host = await openPluginHost(
      [
        { plugin: market, settings: { symbols } },
        { plugin: regime, settings },
      ],
      { now: () => new Date('2025-08-06T14:00:20Z') },
    )
    await host.run('classify')
    expect(host.registrations[1]!.jobs!.map(({ name }) => name)).to.deep.equal(['classify'])
    expect((await host.call('getRegimeCurrent', { symbol: 'btcusd' })).symbol).to.equal('BTC-USD')
    for (const symbol of ['ETH-USD', 'doge-usd']) {
      const error = await host.call('getRegimeCurrent', { symbol }).catch((failure: unknown) => failure)
      expect(error).to.be.instanceOf(NotFound)
      expect(String(error)).to.match(/collected online only; sample data have BTC-USD alone/)
    }
    await host.stop()
  })
})
