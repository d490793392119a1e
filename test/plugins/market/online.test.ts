import { expect } from 'chai'
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import market from '../../../plugins/market/index.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import { closeAt, openVenue, type FakeVenue } from './fake-venue.ts'

const START = Date.UTC(2026, 1, 1) / 1000
const HOUR = 3600

describe('the collector of market bars', () => {
  let coinbase: FakeVenue
  let binance: FakeVenue
  let host: PluginHost
  let clock: number
  let db: OpenDatabase

  const settings = (): Record<string, unknown> => ({
    history_start: '2026-02-01T00:00:00Z',
    symbols: [
      {
        symbol: 'BTC-USD',
        name: 'Bitcoin',
        aliases: [],
        session: '24x7',
        price: 1,
        volatility: 1,
        turnover: 1,
        tick: 0.01,
        venues: { coinbase: 'BTC-USD', binance: 'BTCUSDT' },
      },
    ],
    venues: { coinbase: { url: coinbase.url, per_second: 1000 }, binance: { url: binance.url, per_second: 1000 } },
  })
  const openHost = (): Promise<PluginHost> =>
    openPluginHost([{ plugin: market, settings: settings() }], {
      dataMode: 'online',
      now: () => new Date(clock * 1000),
      db,
    })
  const bars = (from: number, to: number, asOf = clock) =>
    host.call('getBars', { symbol: 'btc-usd', from, to, interval: 60 }, { asOf: new Date(asOf * 1000) })
  const facts = () => host.registrations[0]!.facts!()

  beforeEach(async () => {
    coinbase = await openVenue()
    binance = await openVenue()
    clock = START + 20 * HOUR + 12
    db = openDatabase({ file: ':memory:' })
    host = await openHost()
  })
  afterEach(async () => {
    await host.stop()
    await db.destroy()
    await coinbase.close()
    await binance.close()
  })

  it('back-fills from the newest window to the oldest, in windows of 300 minutes', async () => {
    await host.run('backfill')
    const starts = coinbase.requests.map((request) => new URL(request, 'http://v').searchParams.get('start'))
    expect(starts).to.deep.equal([
      '2026-02-01T15:00:00.000Z',
      '2026-02-01T10:00:00.000Z',
      '2026-02-01T05:00:00.000Z',
      '2026-02-01T00:00:00.000Z',
    ])
    const { count, close, time, open } = await bars(START, START + 20 * HOUR)
    expect(count).to.equal(1200)
    expect([...close]).to.deep.equal([...time].map(closeAt))
    expect(open[1]).to.equal(close[0])
  })

  it('continues an interrupted back-fill without fetching a window twice', async () => {
    const controller = new AbortController()
    coinbase.onRequest = () => coinbase.requests.length === 2 && controller.abort()
    await host.run('backfill', controller.signal).catch(() => undefined)
    coinbase.onRequest = () => {}
    const before = coinbase.requests.length
    expect(before).to.be.below(4)
    host = await openHost()
    await host.run('backfill')
    expect((await bars(START, START + 20 * HOUR)).count).to.equal(1200)
    expect(new Set(coinbase.requests).size).to.be.at.least(4)
    expect(coinbase.requests.length).to.be.at.most(5)
  })

  it('waits as long as Retry-After says, then continues', async () => {
    coinbase.faults.push({ status: 429, headers: { 'retry-after': '30' } })
    await host.run('backfill')
    expect(coinbase.requests).to.have.length(1)
    clock += 29
    await host.run('backfill')
    expect(coinbase.requests).to.have.length(1)
    clock += 1
    await host.run('backfill')
    expect((await bars(START, START + 20 * HOUR)).count).to.equal(1200)
  })

  it('stops asking a venue that refuses service, and reads the second one instead', async () => {
    coinbase.faults.push({ status: 451 })
    await host.run('backfill')
    await host.run('backfill')
    await host.run('poll')
    expect(coinbase.requests).to.have.length(1)
    const { venue, count } = await bars(START + 4 * HOUR, START + 16 * HOUR)
    expect(venue).to.equal('binance')
    expect(count).to.equal(720)
    expect(await facts()).to.deep.include({ venues_refusing: ['coinbase'] })
  })

  it('polls the minutes that closed since the last one, and never the open minute', async () => {
    await host.run('poll')
    clock += 120
    await host.run('poll')
    const { time } = await bars(START + 20 * HOUR - 600, clock + 600)
    expect(time.at(-1)).to.equal(START + 20 * HOUR + 60)
    const last = new URL(coinbase.requests.at(-1)!, 'http://v').searchParams
    expect(Date.parse(last.get('end')!) / 1000 + 60).to.equal(START + 20 * HOUR + 120)
    const count = coinbase.requests.length
    await host.run('poll')
    expect(coinbase.requests).to.have.length(count)
  })

  it('asks for a missing minute again after 1, 5 and 30 minutes and a day, then fills it', async () => {
    const missingMinute = START + 2 * HOUR
    coinbase.missing.add(missingMinute)
    await host.run('backfill')
    const requestsForHole = (): number =>
      coinbase.requests.filter((request) => decodeURIComponent(request).includes('T02:00:00.000Z&end=2026-02-01T02:00'))
        .length
    const retries: number[] = []
    for (const wait of [60, 300, 1800, 86_400]) {
      clock += wait - 1
      await host.run('backfill')
      const before = requestsForHole()
      clock += 1
      await host.run('backfill')
      retries.push(requestsForHole() - before)
    }
    expect(retries).to.deep.equal([1, 1, 1, 1])
    const { close, volume, state } = await bars(missingMinute, missingMinute + 60)
    expect([close[0], volume[0], state[0]]).to.deep.equal([closeAt(missingMinute - 60), 0, 1])
    expect((await bars(missingMinute, missingMinute + 60, clock - 60)).count).to.equal(0)
  })

  it('hides a bar that arrives late from answers for an earlier time', async () => {
    const missingMinute = START + 2 * HOUR
    coinbase.missing.add(missingMinute)
    await host.run('backfill')
    coinbase.missing.clear()
    const before = clock
    clock += 60
    await host.run('backfill')
    expect((await bars(missingMinute, missingMinute + 60)).count).to.equal(1)
    expect((await bars(missingMinute, missingMinute + 60, before)).count).to.equal(0)
  })

  it('corrects a bad print once the next minute proves it, and leaves it in answers for an earlier time', async () => {
    await host.run('backfill')
    const spike = START + 20 * HOUR
    coinbase.closes.set(spike, closeAt(spike) * 1.05)
    clock = spike + 65
    await host.run('poll')
    const seen = clock
    expect((await bars(spike, spike + 60)).close[0]).to.equal(closeAt(spike) * 1.05)
    clock += 60
    await host.run('poll')
    const { close, state } = await bars(spike, spike + 60)
    expect([close[0], state[0]]).to.deep.equal([closeAt(spike - 60), 2])
    expect((await bars(spike, spike + 60, seen)).close[0]).to.equal(closeAt(spike) * 1.05)
    clock += 600
    await host.run('poll')
    expect((await bars(spike, spike + 60)).close[0]).to.equal(closeAt(spike - 60))
  })

  it('records closes of two venues that differ by more than one percent', async () => {
    await host.run('backfill')
    await host.run('poll')
    binance.closes.set(START + 20 * HOUR - 600, closeAt(START + 20 * HOUR - 600) * 1.02)
    await host.run('compare')
    expect(await facts()).to.deep.include({ venue_differences: 1 })
  })

  it('reports the history as complete only when every window was fetched', async () => {
    expect((await host.call('getMarketStatus', { symbol: 'BTC-USD' })).ready).to.equal(false)
    await host.run('backfill')
    const { ready, series } = await host.call('getMarketStatus', { symbol: 'BTC-USD' })
    expect(ready).to.equal(true)
    expect(series[0]).to.deep.include({ venue: 'coinbase', first: START, last: START + 20 * HOUR - 60 })
  })
})
