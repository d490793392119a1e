import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InvalidInput, NotFound, Unavailable } from 'tollgate/plugin'
import { expect } from 'chai'
import fc from 'fast-check'
import { pino } from 'pino'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { aggregateBars, createColumns, badPrints } from '../../../plugins/market/bars.ts'
import market from '../../../plugins/market/index.ts'
import { createBarStore, migrations } from '../../../plugins/market/bar-store.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import { POSTGRES_URL } from '../../support/services.ts'
import { until } from '../../support/until.ts'

const settings = (
  JSON.parse(readFileSync(join(import.meta.dirname, '../../../catalog/market.json'), 'utf8')) as { settings: object }
).settings as Readonly<Record<string, unknown>>
const NOW = new Date('2026-11-20T12:00:30Z')
const now = Math.floor(NOW.getTime() / 1000)

describe('market bars of the sample', () => {
  let host: PluginHost
  before(async () => {
    host = await openPluginHost([{ plugin: market, settings }], { now: () => NOW })
  })
  after(() => host.stop())

  it('are found by any spelling of the symbol', async () => {
    for (const symbol of ['BTC-USD', 'btcusdt', 'xbt/usd', 'Btc_Usd'])
      expect((await host.call('getBars', { symbol, from: now - 600, interval: 60 })).symbol).to.equal('BTC-USD')
  })

  it('never include a bar that had not closed at the requested time', async () => {
    const { time } = await host.call('getBars', { symbol: 'BTC-USD', from: now - 600, to: now + 600, interval: 60 })
    expect(time.at(-1)).to.equal(Date.UTC(2026, 10, 20, 11, 59) / 1000)
    const asOf = new Date('2026-11-20T10:59:59Z')
    const earlier = await host.call(
      'getBars',
      { symbol: 'BTC-USD', from: now - 86_400, to: now, interval: 3600 },
      { asOf },
    )
    expect(earlier.time.at(-1)).to.equal(Date.UTC(2026, 10, 20, 9) / 1000)
  })

  it('are aggregated into longer ones', async () => {
    const range = { symbol: 'BTC-USD', from: now - 7200, to: now }
    const minutes = await host.call('getBars', { ...range, from: Date.UTC(2026, 10, 20, 10) / 1000, interval: 60 })
    const hours = await host.call('getBars', { ...range, interval: 3600 })
    expect(hours.count).to.equal(1)
    expect(hours.high[0]).to.equal(Math.max(...minutes.high.subarray(60, 120)))
    expect([hours.open[0], hours.close[0]]).to.deep.equal([minutes.open[60], minutes.close[119]])
  })

  it('have all of their minutes where the range ends within one', async () => {
    const ten = Date.UTC(2026, 10, 20, 10) / 1000
    const hours = (to: number) => host.call('getBars', { symbol: 'BTC-USD', from: ten, to, interval: 3600 })
    const [whole, cut] = [await hours(ten + 3600), await hours(ten + 1800)]
    expect(whole.count).to.equal(1)
    expect([...cut.close, ...cut.volume]).to.deep.equal([...whole.close, ...whole.volume])
  })

  it('are refused for an unknown symbol, with a list of the covered ones, and for a reversed range', async () => {
    const ask = (query: object) => host.call('getBars', query).catch((error: unknown) => error)
    const unknown = await ask({ symbol: 'NOPE', from: now - 60, interval: 60 })
    expect(unknown).to.be.instanceOf(NotFound).with.property('message').that.includes('BTC-USD')
    expect(await ask({ symbol: 'BTC-USD', from: now, to: now - 60, interval: 60 })).to.be.instanceOf(InvalidInput)
  })
})

describe('market bars of a recording', () => {
  const folder = mkdtempSync(join(tmpdir(), 'market-'))
  after(() => rmSync(folder, { recursive: true }))
  const first = Date.UTC(2017, 0, 2) / 1000

  before(() => {
    const rows = Array.from({ length: 40 * 1440 }, (_, i) => i)
      .filter((i) => i % 10 !== 3)
      .map((i) => `${first + i * 60},${100 + (i % 7)},${102 + (i % 7)},99,${100 + ((i + 1) % 7)},5`)
    writeFileSync(
      join(folder, 'bitfinex_btcusd_1m_2017.csv'),
      `timestamp,open,high,low,close,volume\n${rows.join('\n')}\n`,
    )
    writeFileSync(join(folder, 'daily_raw_aapl_lean.csv'), 'date,open,high,low,close,volume\n2017-01-03,1,2,1,2,9\n')
  })

  const beginHost = (replayShift: string, moment: Date, db?: PluginHost['db']): Promise<PluginHost> =>
    openPluginHost([{ plugin: market, settings }], {
      now: () => moment,
      dataMode: 'replay',
      replayDir: folder,
      replayShift,
      ...(db ? { db } : {}),
    })

  async function openHost(...options: Parameters<typeof beginHost>): Promise<PluginHost> {
    const host = await beginHost(...options)
    await host.run('load')
    return host
  }

  it('are not answered from until all are loaded, by this process or another', async () => {
    const db = openDatabase({ file: ':memory:' })
    const [host, other] = [await beginHost('none', NOW, db), await beginHost('none', NOW, db)]
    for (const each of [host, other])
      for (const call of [
        () => each.call('getSymbols'),
        () => each.call('getBars', { symbol: 'BTC-USD', from: first, interval: 60 }),
      ]) {
        const error: unknown = await call().catch((thrown: unknown) => thrown)
        expect(error).to.be.instanceOf(Unavailable)
        expect(error).to.include({ status: 503, message: '0% of the recorded bars are loaded. You were not charged; retry in a few seconds.' }) // prettier-ignore
        expect((error as Unavailable).headers['retry-after']).to.equal('5')
      }
    const request = { operation: 'getMarketStatus', params: {}, query: { symbol: 'BTC-USD' }, body: undefined }
    const freshness = async () => host.registrations[0]?.freshness?.(request, NOW, {} as never)
    expect(await freshness()).to.deep.equal({ newest: null, sources: 0, coverage: 0 })
    await host.run('load')
    expect(await freshness()).to.deep.equal({ newest: NOW, sources: null, coverage: 1 })
    const { origin } = await host.call('getSymbols')
    await until(async () => (await other.call('getSymbols').catch(() => null))?.origin === origin)
    await db.destroy()
  })

  it('are loaded again after a process has ended before it had loaded them', async () => {
    const db = openDatabase({ file: ':memory:' })
    const whole = await openHost('none', NOW, db)
    const bars = async (host: PluginHost) =>
      (await host.call('getBars', { symbol: 'BTC-USD', from: first, interval: 60 })).count
    const count = await bars(whole)
    const half = await beginHost('auto', NOW, db)
    const ending = new AbortController()
    ending.abort(new Error('the process ends'))
    expect(await half.run('load', ending.signal).catch(() => 'ended')).to.equal('ended')
    // The bars of the first shift are gone, so its note must be, too.
    const next = await beginHost('none', NOW, db)
    expect(await next.call('getSymbols').catch((error: unknown) => error)).to.be.instanceOf(Unavailable)
    await next.run('load')
    expect(await bars(next)).to.equal(count)
    await db.destroy()
  })

  it('play in real time after the first start, shifted by whole weeks, also after a restart', async () => {
    const db = openDatabase({ file: ':memory:' })
    await openHost('auto', NOW, db)
    const later = new Date(NOW.getTime() + 3 * 86_400_000)
    const host = await openHost('auto', later, db)
    const query = { symbol: 'BTC-USD', from: now - 30 - 86_400, interval: 60 }
    const firstDay = await host.call('getBars', query, { asOf: NOW })
    expect(firstDay.count).to.equal(1440)
    expect((await host.call('getBars', { ...query, from: now - 30 + 2 * 86_400 })).count).to.equal(1440)
    expect((firstDay.time[0]! - first) % 60).to.equal(0)
    const status = await host.call('getMarketStatus', { symbol: 'BTC-USD' })
    expect((status.series[0]!.first! - first) % (7 * 86_400)).to.equal(0)
    expect(status.ready).to.equal(true)
    await db.destroy()
  })

  it('keep the recorded times in a frozen replay, where quiet minutes are filled', async () => {
    const host = await openHost('frozen:2017-01-10T00:00:00Z', new Date('2017-01-10T00:00:00Z'))
    const { count, time, volume } = await host.call('getBars', { symbol: 'BTC-USD', from: first, interval: 60 })
    expect([count, time[0]]).to.deep.equal([8 * 1440, first])
    expect([volume[2], volume[3]]).to.deep.equal([5, 0])
    await host.stop()
  })

  it('are without the rows that are no bars, which the log counts by reason', async () => {
    const other = mkdtempSync(join(tmpdir(), 'market-'))
    const rows = ['2017-01-03,1,2,1,2,9', '2017-01-04,1,2,1.5,2,9', '2017-01-05,1,2,1,2.5,9', '2017-01-06,,,,,']
    const file = 'daily_raw_aapl_lean.csv'
    writeFileSync(join(other, file), `date,open,high,low,close,volume\n${rows.join('\n')}\n`)
    const lines: { msg: string }[] = []
    const log = pino(
      { level: 'warn' },
      { write: (line: string) => void lines.push(JSON.parse(line) as { msg: string }) },
    )
    const host = await openPluginHost([{ plugin: market, settings }], {
      now: () => NOW,
      dataMode: 'replay',
      replayDir: other,
      log,
    })
    await host.run('load')
    expect((await host.call('getBars', { symbol: 'AAPL', from: 0, interval: 86_400 })).count).to.equal(1)
    expect(lines.find(({ msg }) => msg.startsWith('rows of a recording'))).to.deep.include({
      file,
      dropped: { outside_high_low: 2, not_a_number: 1 },
    })
    await host.stop()
    rmSync(other, { recursive: true })
  })

  it('are replaced when REPLAY_SHIFT changes', async () => {
    const db = openDatabase({ file: ':memory:' })
    const one = (await (await openHost('auto', NOW, db)).call('getSymbols')).origin
    const host = await openHost('none', new Date(NOW.getTime() + 1000), db)
    const { origin, symbols } = await host.call('getSymbols')
    expect(origin).not.to.equal(one)
    expect(symbols.map(({ symbol }) => symbol)).to.have.members(['BTC-USD', 'AAPL'])
    expect((await host.call('getMarketStatus', { symbol: 'BTC-USD' })).series[0]!.first).to.equal(first)
    await db.destroy()
  })
})

describe('aggregated bars', () => {
  it('keep the volume and the extremes of any bars', () => {
    const bar = fc.record({
      gap: fc.integer({ min: 1, max: 40 }),
      price: fc.integer({ min: 1, max: 99 }),
      volume: fc.integer({ min: 0, max: 9 }),
    })
    fc.assert(
      fc.property(fc.array(bar, { minLength: 1, maxLength: 60 }), (list) => {
        const bars = createColumns()
        let time = 0
        for (const { gap, price, volume } of list)
          bars.add((time += gap * 60), price, price + 1, price - 0.5, price, volume, 0)
        const columns = bars.end()
        const hours = aggregateBars(columns, 3600)
        const sum = (values: Float64Array): number => values.reduce((total, value) => total + value, 0)
        expect(sum(hours.volume)).to.equal(sum(columns.volume))
        expect(Math.max(...hours.high)).to.equal(Math.max(...columns.high))
        expect(hours.time.every((at, i) => at % 3600 === 0 && (i === 0 || at > hours.time[i - 1]!))).to.equal(true)
      }),
    )
  })
})

for (const [name, options] of [
  ['SQLite', { file: ':memory:' }],
  ['PostgreSQL', { url: POSTGRES_URL }],
] as const)
  describe(`stored bars on ${name}`, () => {
    const db = openDatabase(options)
    before(async function () {
      try {
        await db.raw('select 1')
      } catch {
        this.skip()
      }
      await migrate(db, 'market', migrations)
      await createBarStore(db).clear()
    })
    after(() => db.destroy())

    it('are read exactly as they were known at any time, even if they were late or misprinted', async () => {
      const store = createBarStore(db)
      const series = await store.series('x', 'BTC-USD', 60)
      const closes = [...Array.from({ length: 40 }, (_, i) => 100 + 0.01 * (i % 3)), 105, 100.01, 100.02]
      const bars = createColumns()
      for (const [i, close] of closes.entries()) bars.add(i * 60, closes[i - 1] ?? close, close, close, close, 1, 0)
      const columns = bars.end()
      await store.add(series, columns, { misprints: badPrints(columns) })
      const closeOf = async (i: number, asOf: number): Promise<number | undefined> =>
        (await store.read(series, i * 60, i * 60 + 60, asOf)).close[0]
      expect(await closeOf(40, 40 * 60 + 59)).to.equal(undefined)
      expect(await closeOf(40, 40 * 60 + 60)).to.equal(105)
      expect(await closeOf(40, 41 * 60 + 60)).to.equal(closes[39])
      const late = createColumns()
      late.add(43 * 60, 1, 1, 1, 1, 1, 0)
      await store.add(series, late.end(), { knownAt: 5000 })
      expect([await closeOf(43, 4999), await closeOf(43, 5000)]).to.deep.equal([undefined, 1])
      await store.add(series, columns)
      expect((await store.read(series, 0, 1e9, 1e9)).count).to.equal(44)
      expect(await store.extent(series)).to.deep.equal({ first: 0, last: 43 * 60 })
    })
  })
