import { deserialize, serialize } from 'node:v8'
import { InvalidInput, NotHeld, type OutputOf, Unavailable } from 'tollgate/plugin'
import { expect } from 'chai'
import { openDatabase } from '../../../gateway/stores/database.ts'
import market from '../../../plugins/market/index.ts'
import regime from '../../../plugins/regime/index.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import type { ModelState } from '../../../plugins/regime/regime-model.ts'
import { encodeSnapshots, newestSnapshots, openSnapshots } from '../../../plugins/regime/snapshots.ts'
import { snapshotAt } from './snapshot.ts'
import { POSTGRES_URL } from '../../support/services.ts'

const SYMBOL = {
  symbol: 'BTC-USD',
  name: 'Bitcoin',
  aliases: [],
  session: '24x7',
  price: 98_000,
  volatility: 0.5,
  turnover: 2e9,
  tick: 0.01,
}
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, nth) => from + nth)
const SINCE = '2025-08-20T00:00:00Z'

const plugins = [
  { plugin: market, settings: { symbols: [SYMBOL] } },
  { plugin: regime, settings: { symbol: 'BTC-USD', symbols: [], since: SINCE } },
]

for (const [name, options] of [
  ['SQLite', { file: ':memory:' }],
  ['PostgreSQL', { url: POSTGRES_URL }],
] as const)
  describe(`the regime on ${name}`, () => {
    const db = openDatabase(options)
    let clock = Date.parse('2025-09-03T10:00:20Z')
    let host: PluginHost
    const openHost = (): Promise<PluginHost> => openPluginHost(plugins, { now: () => new Date(clock), db })
    const refusal = (operation: string, query?: object): Promise<unknown> =>
      host.call(operation, query).then(
        () => expect.fail('was not refused'),
        (error: unknown) => error,
      )
    const history = (query: object): Promise<OutputOf<'getRegimeHistory'>> =>
      host.call('getRegimeHistory', { limit: 1440, ...query })

    before(async function () {
      try {
        await db.raw('select 1')
      } catch {
        this.skip()
      }
      for (const table of ['regime_snapshots', 'regime_checkpoints', 'regime_series'])
        if (await db.schema.hasTable(table)) await db(table).delete()
      host = await openHost()
    })
    after(() => db.destroy())

    it('answers 503 and charges nothing before the history is complete', async () => {
      expect(await refusal('getRegimeCurrent')).to.be.instanceOf(Unavailable)
      expect(await refusal('getRegimeCurrent', { horizon: '1d' })).to.be.instanceOf(Unavailable)
      expect(await refusal('getRegimeHistory', { horizon: '1d', limit: 10 })).to.be.instanceOf(Unavailable)
    })

    it('has a snapshot for every minute since the first day, and serves the newest', async () => {
      await host.run('classify')
      const facts = await host.registrations[1]!.facts!()
      expect(facts).to.deep.include({ first: SINCE, last: '2025-09-03T10:00:00Z', snapshots: (14 * 24 + 10) * 60 + 1 })
      const current = await host.call('getRegimeCurrent')
      expect(current).to.deep.include({
        as_of: '2025-09-03T10:00:00Z',
        symbol: 'BTC-USD',
        data_age_seconds: 20,
        model: 'har-schmitt/2',
        annualisation: 365,
        data_mode: 'sample',
      })
      expect(current).not.to.have.property('delayed_by_seconds')
    })

    it('serves the snapshot of 24 hours ago as the free sample, and says so', async () => {
      const sample = await host.call('getRegimeSample', {}, { maxFreshnessSeconds: 86_400 })
      expect(sample).to.deep.include({
        as_of: '2025-09-02T10:00:00Z',
        delayed_by_seconds: 86_400,
        data_age_seconds: 20,
      })
      const { snapshots } = await history({ start: sample.as_of, limit: 1 })
      expect(sample).to.deep.include(snapshots[0]!)
    })

    it('forecasts longer horizons once an hour, now and in the history, with a scalar and a band', async () => {
      const plain = await host.call('getRegimeCurrent')
      expect(await host.call('getRegimeCurrent', { horizon: '1h' })).to.deep.equal(plain)
      expect(plain).to.include({ horizon: '1h', horizon_minutes: 60, target_vol: plain.reference_vol })
      expect(plain.position_scalar).to.be.closeTo(
        Math.min(1.5, Math.max(0.25, plain.target_vol! / plain.forecast_vol)),
        1e-3,
      )
      const minutes = { '4h': 240, '1d': 1440, '1w': 10_080 }
      for (const horizon of ['4h', '1d', '1w'] as const) {
        const found = await host.call('getRegimeCurrent', { horizon })
        expect(found).to.deep.include({
          regime: plain.regime,
          confidence: plain.confidence,
          boundary_vol: plain.boundary_vol,
          horizon,
          horizon_minutes: minutes[horizon],
          target_vol: 0.5,
          reference_vol: plain.reference_vol,
          forecast_as_of: '2025-09-03T10:00:00Z',
        })
        expect(found.position_scalar).to.be.closeTo(0.5 / found.forecast_vol, 1e-3)
        expect(found.forecast_vol_p10).to.be.below(found.forecast_vol_median!)
        expect(found.forecast_vol_median).to.be.below(found.forecast_vol_p90!)
        const { low, high, turns_per_year: turns } = found.no_trade_band!
        expect([low < found.position_scalar, found.position_scalar < high, turns > 0]).to.deep.equal([true, true, true])
        // The week changed between these hours. The history says what the current regime said.
        const page = await history({ start: '2025-08-27T22:30:00Z', horizon })
        expect(page).to.include({ count: 156, next_start: null, coverage: 1 })
        expect(page.snapshots.map(({ as_of: asOf }) => asOf.slice(14))).to.deep.equal(
          page.snapshots.map(() => '00:00Z'),
        )
        for (const at of [0, 1, 2, 155]) {
          const row = page.snapshots[at]!
          const then = await host.call(
            'getRegimeCurrent',
            { horizon },
            { asOf: new Date(Date.parse(row.as_of) + 90_000) },
          )
          for (const name of ['forecast_vol', 'forecast_vol_mean', 'forecast_vol_p10', 'position_scalar'] as const)
            expect(then[name], `${horizon} ${row.as_of} ${name}`).to.equal(row[name])
          expect(then.no_trade_band).to.deep.equal(row.no_trade_band)
        }
        const first = await history({ start: page.snapshots[0]!.as_of, horizon, limit: 100 })
        const rest = await history({ start: first.next_start!, horizon, limit: 100 })
        expect([...first.snapshots, ...rest.snapshots]).to.deep.equal(page.snapshots)
      }
      expect(await history({ horizon: '1h', limit: 5 })).to.deep.equal(await history({ limit: 5 }))
      const error = await refusal('getRegimeHistory', { horizon: '1d', provenance: true, limit: 5 })
      expect(error).to.be.instanceOf(InvalidInput)
    })

    it('pages through the history completely, oldest first, with start inclusive and end exclusive', async () => {
      const whole = await history({ start: '2025-09-01', end: '2025-09-02T00:00:00Z' })
      expect([whole.count, whole.next_start]).to.deep.equal([1440, null])
      const pages: unknown[] = []
      for (let start: string | null = '2025-09-01'; start !== null;) {
        const page: OutputOf<'getRegimeHistory'> = await history({ start, end: 1756771200, limit: 400 })
        pages.push(...page.snapshots)
        start = page.next_start
        expect(page.next_cursor).to.equal(page.next_start)
      }
      expect(pages).to.deep.equal(whole.snapshots)
      const { next_cursor: cursor } = await history({ start: '2025-09-01', end: 1756771200, limit: 1000 })
      const second = await history({ start: '2025-09-01', end: 1756771200, limit: 1000, cursor })
      expect(second.snapshots).to.deep.equal(whole.snapshots.slice(1000))
      expect(Object.keys(whole.snapshots[0]!)).to.deep.equal([
        'as_of',
        'symbol',
        'regime',
        'confidence',
        'position_scalar',
        'forecast_vol',
        'forecast_vol_mean',
        'boundary_vol',
        'realized_vol_1h',
      ])
    })

    it('returns the latest minutes without a start, and none of the future', async () => {
      const { snapshots, count } = await history({ limit: 10 })
      expect([count, snapshots.at(-1)!.as_of]).to.deep.equal([10, '2025-09-03T10:00:00Z'])
    })

    it('says how much of the window has snapshots and which is the newest, the same whenever a past window is asked for', async () => {
      const query = { start: '2025-09-01', end: '2025-09-02', limit: 400 }
      const page = await history(query)
      expect(page).to.include({ coverage: 1, newest: '2025-09-01T06:39:00Z' })
      const later = new Date(clock + 50_000)
      expect(await host.call('getRegimeHistory', query, { asOf: later })).to.deep.equal(page)
      // What was never classified: a window that begins six hours before the first snapshot.
      const early = await history({ start: '2025-08-19T18:00:00Z', end: '2025-08-20T02:00:00Z' })
      expect(early).to.include({ count: 120, coverage: 0.25, newest: '2025-08-20T01:59:00Z' })
      // A page answers up to the first minute of the next one.
      const { coverage, next_start } = await history({ start: '2025-08-19T23:00:00Z', limit: 60 })
      expect([coverage, next_start]).to.deep.equal([0.5, '2025-08-20T01:00:00Z'])
    })

    it('refuses a window outside what is held, and names the nearest one that holds something', async () => {
      const nearestTo = async (query: object) => {
        const error = await refusal('getRegimeHistory', { limit: 10, ...query })
        expect(error).to.be.instanceOf(NotHeld)
        const { nearest } = (error as NotHeld).fields as { nearest: { start: string; end: string } }
        const { count } = await history(nearest)
        expect(count, 'the nearest window holds something').to.be.greaterThan(0)
        return nearest
      }
      expect(await nearestTo({ start: '2030-01-01T00:00:00Z', end: '2030-01-01T01:00:00Z' })).to.deep.equal({
        start: '2025-09-03T09:01:00.000Z',
        end: '2025-09-03T10:01:00.000Z',
      })
      const { start } = await nearestTo({ start: '2020-01-01', end: '2020-01-02' })
      expect((await history({ start: '2020-01-01', limit: 1 })).snapshots[0]?.as_of).to.equal(start.replace('.000', ''))
    })

    it('refuses a start at or after the end and an invalid timestamp, and names the field', async () => {
      expect(await refusal('getRegimeHistory', { start: '2025-09-02', end: '2025-09-02', limit: 1 })).to.be.instanceOf(
        InvalidInput,
      )
      expect(await refusal('getRegimeHistory', { start: '2025-09-02', end: '2025-09-01', limit: 1 })).to.be.instanceOf(
        InvalidInput,
      )
      const wrong = (await refusal('getRegimeHistory', { end: 'soon', limit: 1 })) as InvalidInput
      expect(wrong.detail[0]).to.deep.include({ loc: ['query', 'end'], input: 'soon' })
    })

    it('shows nothing newer than the requested time', async () => {
      const asOf = new Date('2025-08-25T07:30:59Z')
      expect(await host.call('getRegimeCurrent', {}, { asOf })).to.deep.include({ as_of: '2025-08-25T07:30:00Z' })
      const { snapshots } = await host.call('getRegimeHistory', { limit: 3 }, { asOf })
      expect(snapshots.at(-1)!.as_of).to.equal('2025-08-25T07:30:00Z')
    })

    it('answers 503 once the last bar is older than 300 seconds', async () => {
      const previousClock = clock
      clock = Date.parse('2025-09-03T10:05:00Z')
      expect((await host.call('getRegimeCurrent')).data_age_seconds).to.equal(300)
      clock += 1000
      expect(await refusal('getRegimeCurrent'))
        .to.be.instanceOf(Unavailable)
        .with.property('message')
        .that.includes('301')
      clock = previousClock
    })

    it('continues after a restart as if it had not stopped, and never changes stored snapshots', async () => {
      const rows = () => db('regime_snapshots').orderBy('as_of')
      const before = await rows()
      const uninterrupted = await openPluginHost(plugins, {
        now: () => new Date(Date.parse('2025-09-05T00:00:10Z')),
      })
      await uninterrupted.run('classify')
      await host.stop()
      for (const moment of ['2025-09-03T23:59:30Z', '2025-09-04T00:00:30Z', '2025-09-05T00:00:10Z']) {
        clock = Date.parse(moment)
        host = await openHost()
        await host.run('classify')
        // A crash does not save the state, so every second start has the older one.
        if (moment.includes('T00')) await host.stop()
      }
      const after = await rows()
      expect(after.slice(0, before.length)).to.deep.equal(before)
      const plain = (list: { series: number }[]) => list.map((row) => ({ ...row, series: 0 }))
      expect(plain(after)).to.deep.equal(plain(await uninterrupted.db('regime_snapshots').orderBy('as_of')))
      await uninterrupted.stop()
    })

    it('stores the newest snapshots first, sells no history until the rest is there, and ends with the same rows', async () => {
      const rowsOf = async ({ db }: PluginHost) =>
        (await db<{ series: number }>('regime_snapshots').orderBy('as_of')).map((row) => ({ ...row, series: 0 }))
      const beginning = new AbortController()
      const begun = await openPluginHost(plugins, { now: () => new Date(clock), onProgress: () => beginning.abort() })
      await begun.run('classify', beginning.signal)
      expect(await begun.call('getRegimeCurrent')).to.deep.include({ as_of: '2025-09-05T00:00:00Z' })
      expect(await begun.call('getRegimeSample', {}, { maxFreshnessSeconds: 86_400 })).to.have.property('as_of')
      expect(await begun.call('getRegimeHistory', { limit: 1440 })).to.have.property('count', 1440)
      const outcomeOf = (query: object): Promise<unknown> =>
        begun.call('getRegimeHistory', { limit: 10, ...query }).catch((error: unknown) => error)
      expect(await outcomeOf({ start: '2025-08-21' })).to.be.instanceOf(Unavailable)
      // Nothing will be stored of the days before the first snapshot.
      expect(await outcomeOf({ start: '2025-08-18', end: SINCE })).to.be.instanceOf(NotHeld)
      expect(await rowsOf(begun)).to.have.length(2 * 1440)

      // Another process that answers calls says how far the model has come: seven days and a half of fourteen.
      const stored = (await newestSnapshots(begun.db, 'BTC-USD'))!
      const other = await openPluginHost(plugins, { now: () => new Date(clock), db: begun.db })
      await stored.keep(Date.parse('2025-08-27T12:00:00Z') / 1000, Buffer.alloc(0))
      for (const process of [begun, other]) {
        const waiting = await process
          .call('getRegimeHistory', { start: '2025-08-28', limit: 10 })
          .catch((e: unknown) => e)
        expect(waiting)
          .to.be.instanceOf(Unavailable)
          .with.property('message')
          .that.includes('53% of the history is computed')
        expect((waiting as Unavailable).fields).to.include({ progress: 0.53 })
      }
      await other.stop()

      // The model has come to a day before the first snapshot, then to one after it.
      await stored.keep(Date.parse('2025-08-19T00:00:00Z') / 1000, Buffer.alloc(0))
      expect(await outcomeOf({ start: '2025-08-10' })).to.be.instanceOf(Unavailable)
      const last = Date.parse('2025-08-20T00:05:00Z') / 1000
      await stored.add(encodeSnapshots(range(0, 6).map((minute) => snapshotAt(last - minute * 60))))
      await stored.keep(last, Buffer.alloc(0))
      expect(await outcomeOf({ start: '2025-08-10', limit: 5 })).to.have.property('count', 5)
      for (const query of [{ limit: 6 }, { limit: 10 }, { end: '2025-08-20T00:10:00Z' }])
        expect(await outcomeOf({ start: '2025-08-10', ...query })).to.be.instanceOf(Unavailable)
      expect(await outcomeOf({ start: '2025-08-10', end: '2025-08-20T00:05:01Z' })).to.have.property('count', 6)
      await begun.db('regime_snapshots').where('as_of', '<=', last).delete()
      await begun.db('regime_checkpoints').delete()

      const restarted = await openPluginHost(plugins, { now: () => new Date(clock), db: begun.db })
      await restarted.run('classify')
      expect(await rowsOf(restarted)).to.deep.equal(await rowsOf(host))
      const { snapshots } = await restarted.call('getRegimeHistory', { start: '2025-08-21', limit: 10 })
      expect(snapshots).to.deep.equal((await history({ start: '2025-08-21', limit: 10 })).snapshots)
      await restarted.stop()
      await begun.stop()
    })

    it('grades each snapshot by the following hour, also in a process that does not run the job', async () => {
      const facts = await (await openHost()).registrations[1]!.facts!()
      const grades = facts as Record<string, number>
      expect(grades['snapshots']).to.equal(16 * 1440 + 1)
      expect(grades['forward_vol_ratio']).to.be.above(1.2)
      expect(grades['persistence_1h']).to.be.within(0.85, 1)
      expect(grades['brier']).to.be.below(0.25)
      expect(grades['ece']).to.be.below(0.15)
      expect([facts['start'], facts['end']]).to.deep.equal([facts['first'], facts['last']])
      const naive = facts['last_hour_rule'] as Record<string, number>
      const named = ['window_days', 'model', 'snapshots', 'first', 'last', 'start', 'end', 'last_hour_rule']
      expect(naive).to.have.all.keys(Object.keys(facts).filter((name) => !named.includes(name)))
      expect(naive['brier'])
        .to.be.closeTo(1 - naive['accuracy']!, 1e-9)
        .and.above(grades['brier']!)
    })
  })

describe('the regime of an equity', () => {
  it('is refused in words, in any spelling', async () => {
    const share = { ...SYMBOL, symbol: 'AAPL', name: 'Apple', session: 'us_equity', price: 230 }
    const hosted = [{ plugin: market, settings: { symbols: [SYMBOL, share] } }, plugins[1]!]
    const host = await openPluginHost(hosted, { now: () => new Date('2025-09-03T10:00:20Z') })
    for (const [operation, symbol] of [
      ['getRegimeCurrent', 'aapl'],
      ['getRegimeHistory', 'NASDAQ:AAPL'],
    ] as const) {
      const error = await host.call(operation, { symbol, limit: 10 }).catch((failure: unknown) => failure)
      expect(error).to.be.instanceOf(InvalidInput)
      expect(String(error)).to.include(`${symbol} trades in sessions`)
    }
    await host.stop()
  })
})

describe('a new model of the regime', () => {
  it('leaves what an earlier one stored as it was sold, and goes on from there with what grades each row', async () => {
    const db = openDatabase({ file: ':memory:' })
    let clock = Date.parse('2025-08-23T10:00:20Z')
    const openHost = (): Promise<PluginHost> => openPluginHost(plugins, { now: () => new Date(clock), db })
    const first = await openHost()
    await first.run('classify')
    await first.stop()
    const nothing = {
      forecast_vol_mean: null,
      forecast_vol_median: null,
      forecast_vol_p10: null,
      forecast_vol_p90: null,
    }
    await db('regime_snapshots').update({ ...nothing, model: null, confidence: 0.5 })
    const { state } = (await db('regime_checkpoints').first('state')) as { state: Buffer }
    const { model: _, ...earlier } = deserialize(state) as ModelState
    await db('regime_checkpoints').update({ state: serialize(earlier) })
    const rows = () => db('regime_snapshots').where('as_of', '<=', 1_755_943_200).orderBy('as_of')
    const stored = (await rows()) as unknown[]
    const query = { start: '2025-08-22', end: '2025-08-23T10:00:01Z', limit: 10_000 }
    const upgraded = await openHost()
    const sold = await upgraded.call('getRegimeHistory', query)

    clock += 3 * 3_600_000
    await upgraded.run('classify')
    expect(await rows()).to.deep.equal(stored)
    expect(await upgraded.call('getRegimeHistory', query)).to.deep.equal(sold)
    expect(sold.snapshots[0]).to.have.keys('as_of', 'symbol', 'regime', 'confidence', 'position_scalar')
    const later = await upgraded.call('getRegimeHistory', { ...query, start: query.end, end: '2025-08-23T13:00:01Z' })
    expect([later.count, later.coverage]).to.deep.equal([180, 1])
    for (const row of later.snapshots) expect(row).to.include.keys('forecast_vol', 'forecast_vol_mean', 'boundary_vol')
    expect(await upgraded.call('getRegimeCurrent')).to.deep.include({ model: 'har-schmitt/2' })
    const sample = await upgraded.call('getRegimeSample', {}, { maxFreshnessSeconds: 86_400 })
    expect(sample).to.deep.include({ model: 'har-schmitt/1' }).and.not.have.property('forecast_vol_mean')
    await upgraded.stop()
    await db.destroy()
  })
})

describe('the grades of the regime', () => {
  it('are not computed before the history is filled in', async () => {
    const db = openDatabase({ file: ':memory:' })
    const host = await openPluginHost(plugins, { now: () => new Date('2025-09-03T10:00:20Z'), db })
    const last = Date.parse('2025-09-03T10:00:00Z') / 1000
    const stored = await openSnapshots(db, 'BTC-USD', 'sample')
    await stored.add(encodeSnapshots(range(0, 200).map((minutes) => snapshotAt(last - minutes * 60))))
    await stored.fillBefore(last - 86_400)
    const facts = await host.registrations[1]!.facts!()
    expect(facts).to.include({ snapshots: 200 }).and.not.have.property('accuracy')
    await host.stop()
    await db.destroy()
  })

  it('are there once the history is, whoever asked for them before', async () => {
    const [bars] = plugins
    const settings = { symbol: 'BTC-USD', symbols: [], since: '2025-08-06T12:00:00Z' }
    const hosted = [bars!, { plugin: regime, settings }]
    const host = await openPluginHost(hosted, { now: () => new Date('2025-08-06T14:00:20Z') })
    const facts = () => host.registrations[1]!.facts!()
    expect(await facts()).to.include({ snapshots: 0 })
    await host.run('classify')
    expect(await facts()).to.have.property('accuracy')
    await host.stop()
  })
})
