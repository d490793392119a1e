/** The regime of a market that is collected from scripted venues. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OperationId, type OutputOf, Unavailable } from 'tollgate/plugin'
import { expect } from 'chai'
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import market from '../../../plugins/market/index.ts'
import regime from '../../../plugins/regime/index.ts'
import { compiled } from '../../support/compiled.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import type { FaultName } from '../../venues/faults.ts'
import { openVenueKit, type VenueKit } from '../../venues/venue-kit.ts'
import { openCollectedMarket, START } from './collected-market.ts'

const HOUR = 3600
type Item = OutputOf<'getRegimeHistory'>['snapshots'][number]

interface CollectionOptions {
  readonly file?: string
  readonly earlierMinutes?: number
}

/** A collector and a classifier over scripted venues, on a clock that a test moves. */
class Collection {
  readonly kit: VenueKit
  readonly db: OpenDatabase
  readonly #open: () => Promise<PluginHost>
  host: PluginHost

  private constructor(kit: VenueKit, db: OpenDatabase, open: () => Promise<PluginHost>, host: PluginHost) {
    this.kit = kit
    this.db = db
    this.#open = open
    this.host = host
  }

  static async open(kit: VenueKit, { file = ':memory:', earlierMinutes = 0 }: CollectionOptions): Promise<Collection> {
    const db = openDatabase({ file })
    const now = (): number => kit.clock.now()
    const open = () => openCollectedMarket({ urls: kit.spotUrls, db, now, earlierMinutes })
    return new Collection(kit, db, open, await open())
  }

  /** Goes on with what is stored, as after a crash: nothing was told to stop. */
  async restart(): Promise<void> {
    this.host = await this.#open()
  }

  async work(): Promise<void> {
    await this.host.run('poll')
    await this.host.run('backfill')
    await this.host.run('classify')
  }

  /** Works every `step` seconds until some seconds have passed. */
  async pass(seconds: number, step = 20): Promise<void> {
    for (let passed = 0; passed < seconds; passed += step) {
      this.kit.clock.advance(step)
      await this.work()
    }
  }

  history(query: object = {}): Promise<OutputOf<'getRegimeHistory'>> {
    return this.host.call('getRegimeHistory', { limit: 10_000, ...query })
  }

  /** Every stored snapshot, whole but for how and when it came about. */
  async snapshots(): Promise<readonly { readonly as_of: number }[]> {
    const rows = (await this.db('regime_snapshots').orderBy('as_of')) as readonly { readonly as_of: number }[]
    return rows.map((row) => ({ ...row, origin: null, computed_at: null, known_at: null }))
  }

  async close(): Promise<void> {
    await this.host.stop()
    await this.db.destroy()
  }
}

/** What a buyer gets, but for how it came about. */
const sold = ({ as_of, symbol, regime: label, confidence, position_scalar }: Item) =>
  JSON.stringify({ as_of, symbol, regime: label, confidence, position_scalar })

describe('the regime of collected bars', function () {
  this.timeout(120_000)
  let kit: VenueKit
  let open: Collection[]
  const collect = async (options: CollectionOptions = {}): Promise<Collection> => {
    const collection = await Collection.open(kit, options)
    open.push(collection)
    return collection
  }
  beforeEach(async () => {
    kit = await openVenueKit({ start: START })
    open = []
  })
  afterEach(async () => {
    for (const collection of open) await collection.close()
    await kit.close()
  })

  it('is the same, byte for byte, minute by minute and in one run over the stored bars', async () => {
    const one = await collect()
    await one.work()
    await one.pass(600)
    // Two against two: held, and agreed on a minute later.
    const stop = ['coinbase', 'kraken'].map((venue) => kit.faults.start('price_factor', { venue }))
    await one.pass(60)
    for (const end of stop) end()
    await one.pass(300)
    // A spike that every venue saw is what traded: it stays stored, and the regime takes it for a shock.
    const spiking = kit.faults.start('price_factor', { factor: 1.03 })
    await one.pass(60)
    spiking()
    await one.pass(1200)
    expect(await one.db('market_bars').where('state', 2).first('t_open')).to.equal(undefined)
    const live = await one.history()
    for (const table of ['regime_snapshots', 'regime_checkpoints', 'regime_series', 'regime_held'])
      await one.db(table).delete()
    await one.restart()
    await one.host.run('classify')
    const batch = await one.history()
    expect(batch.snapshots.map(sold)).to.deep.equal(live.snapshots.map(sold))
    expect(batch.count).to.be.above(1.9 * 1440)
    expect(new Set(live.snapshots.map(({ origin }) => origin))).to.deep.equal(new Set(['backfill', 'live', 'catchup']))
  })

  it('says how much of the bars is fetched while they are back-filled', async () => {
    const stopping = new AbortController()
    let requests = 0
    const counted: typeof fetch = async (...request) => {
      requests += 1
      if (requests > 12) stopping.abort()
      return fetch(...request)
    }
    const db = openDatabase({ file: ':memory:' })
    const now = () => kit.clock.now()
    const host = await openCollectedMarket({ urls: kit.spotUrls, db, now, fetch: counted })
    const refusal = async (operation: OperationId): Promise<Unavailable> => {
      const error: unknown = await host.call(operation, { limit: 10 }).catch((reason: unknown) => reason)
      expect(error).to.be.instanceOf(Unavailable)
      return error as Unavailable
    }
    await host.run('poll')
    await host.run('classify')
    expect((await refusal('getRegimeCurrent')).message).to.match(
      /^\d% of the bars are fetched, 4\d\d\d minutes are not/,
    )
    await host.run('backfill', stopping.signal).catch(() => undefined)
    await host.run('classify')
    const { missing_minutes: missing } = await host.call('getMarketStatus', { symbol: 'BTC-USD' })
    expect(missing!.to_fetch).to.be.within(1000, 4000)
    const share = 1 - missing!.to_fetch / (3 * 1440)
    for (const operation of ['getRegimeCurrent', 'getRegimeHistory'] as const) {
      const { message, fields } = await refusal(operation)
      expect(message).to.contain(`${missing!.to_fetch} minutes are not. Nothing was charged`)
      expect(fields['progress']).to.be.closeTo(share, 0.011)
    }
    // The gateway asks how fresh the regime is before it sells one, and passes the refusal on.
    const ask = (id: OperationId, { query }: { query: object }) => host.call(id, query)
    const report = host.registrations[1]!.freshness!(
      { operation: 'getRegimeCurrent', params: {}, query: {}, body: undefined },
      new Date(now()),
      { ask, freshnessOf: async () => null } as never,
    )
    expect(String(await Promise.resolve(report).catch((reason: unknown) => reason))).to.contain(
      'of the bars are fetched',
    )
    await host.run('backfill')
    await host.run('classify')
    expect(await host.call('getRegimeHistory', { limit: 10 })).to.include({ count: 10 })
    await host.stop()
    await db.destroy()
  })

  for (const earlierMinutes of [0, 30])
    for (const hours of [5, 9.5])
      it(`is that of an undisturbed run after kill -9 in the back-fill and an outage of ${hours} hours, if it begins ${earlierMinutes} minutes earlier`, async () => {
        const folder = mkdtempSync(join(tmpdir(), 'regime-'))
        try {
          const undisturbed = await collect({ earlierMinutes })
          const disturbed: Collection[] = []
          for (const requests of [8, 9, 10]) {
            const file = join(folder, `${requests}.sqlite`)
            await killAfter(requests, file, earlierMinutes)
            const one = await collect({ file, earlierMinutes })
            const windows = (status: string) => one.db('market_windows').where('status', status).first('t_from')
            expect(await windows('done')).not.to.equal(undefined)
            expect(await windows('open')).not.to.equal(undefined)
            disturbed.push(one)
          }
          await undisturbed.work()
          await undisturbed.pass(hours * HOUR, 60)
          const outage = kit.faults.start('unavailable')
          for (const one of disturbed) await one.work()
          outage()
          for (const one of disturbed) await one.restart()
          for (let passed = 0; passed < 600; passed += 20) {
            kit.clock.advance(20)
            for (const one of [undisturbed, ...disturbed]) await one.work()
          }
          const whole = await undisturbed.snapshots()
          const first = whole[0]!.as_of
          expect(whole.map(({ as_of }) => as_of)).to.deep.equal(whole.map((_, minute) => first + minute * 60))
          expect(first + whole.length * 60).to.be.above(kit.clock.now() / 1000 - 60)
          for (const one of disturbed) expect(await one.snapshots()).to.deep.equal(whole)
        } finally {
          rmSync(folder, { recursive: true })
        }
      })

  /** Back-fills in a process of its own, and kills it once it has sent so many requests. */
  async function killAfter(requests: number, file: string, earlierMinutes: number): Promise<void> {
    const program = await compiled('test/plugins/regime/collecting-process.ts')
    const settings = [file, JSON.stringify(kit.spotUrls), String(requests), String(earlierMinutes)]
    const child = spawn(process.execPath, [program, ...settings], { stdio: ['ignore', 'pipe', 'inherit'] })
    child.stdout.once('data', () => child.kill('SIGKILL'))
    const [, signal] = (await once(child, 'close')) as [number | null, string | null]
    expect(signal).to.equal('SIGKILL')
  }

  it('is what three venues make of an hour in which a fourth states 1.05 times the price, and names it', async () => {
    /** An hour in which one of four venues has a fault from the first live minute on. */
    const hourWith = async (fault: FaultName): Promise<Collection> => {
      await kit.close()
      kit = await openVenueKit({ start: START })
      const one = await collect()
      await one.work()
      const stop = kit.faults.start(fault, { venue: 'coinbase' })
      await one.pass(HOUR + 60, 60)
      stop()
      await one.pass(120, 60)
      return one
    }
    const without = await (await hourWith('server_error')).snapshots()
    const lied = await hourWith('price_factor')
    const from = Math.ceil(START / 60_000) * 60
    const { snapshots } = await lied.history({ start: from, provenance: true })
    const hour = snapshots.filter(({ as_of }) => Date.parse(as_of) / 1000 <= from + HOUR)
    expect(hour.length).to.equal(61)
    for (const item of hour) {
      expect(item.disagreeing, item.as_of).to.deep.equal(['coinbase'])
      expect(item.venues).to.have.members(['kraken', 'bitstamp', 'bitfinex'])
    }
    const unmarked = (rows: readonly { readonly as_of: number }[]) =>
      rows.filter(({ as_of }) => as_of <= from + HOUR).map((row) => ({ ...row, venues: null }))
    expect(unmarked(await lied.snapshots())).to.deep.equal(unmarked(without))
  })

  it('goes on when a venue states nulls today', async () => {
    const one = await collect()
    await one.work()
    kit.faults.start('null_rows', { venue: 'coinbase' })
    await one.pass(300)
    await one.restart()
    await one.pass(120)
    expect((await one.host.call('getRegimeCurrent')).data_age_seconds).to.be.below(120)
  })

  it('repeats its label while venues disagree, says so, is not sold after five minutes, and keeps what was sold', async () => {
    const one = await collect()
    await one.work()
    await one.pass(300)
    const before = await one.host.call('getRegimeCurrent')
    expect(before).to.include({ origin: 'live', warm_up: true, coverage: 1 })
    const stop = ['coinbase', 'kraken'].map((venue) => kit.faults.start('price_factor', { venue }))
    await one.pass(120)
    const heldAt = new Date(kit.clock.now())
    const held = await one.host.call('getRegimeCurrent')
    expect(held).to.include({ origin: 'held', regime: before.regime, position_scalar: before.position_scalar })
    expect(held.venues).to.deep.equal([])
    expect(held.data_age_seconds).to.be.within(100, 200)
    expect(held.as_of > before.as_of).to.equal(true)
    const heldMinutes = (Date.parse(held.as_of) - Date.parse(before.as_of)) / 60_000
    expect(held.coverage).to.be.closeTo(1 - heldMinutes / 60, 1e-4)
    expect((await one.history({ start: held.as_of })).snapshots[0]).to.include({ origin: 'held' })
    // The fault ends before the minutes are given up.
    for (const end of stop) end()
    await one.pass(300)
    expect(await one.host.call('getRegimeCurrent')).to.include({ origin: 'live', coverage: 1 })
    const [now] = (await one.history({ start: held.as_of, limit: 1 })).snapshots
    expect(now).to.include({ as_of: held.as_of, origin: 'catchup' })
    const ever = await one.history({ start: held.as_of, origin: 'held', provenance: true })
    expect(ever.snapshots[0]).to.include({ as_of: held.as_of, position_scalar: held.position_scalar })
    expect(ever.snapshots[0]!.superseded_at).to.be.a('string')
    const { data_age_seconds: _, ...then } = await one.host.call('getRegimeCurrent', {}, { asOf: heldAt })
    const { data_age_seconds: __, ...sale } = held
    expect(then).to.deep.equal(sale)
    // For good: what is older than five minutes is not sold.
    for (const venue of ['coinbase', 'kraken']) kit.faults.start('unavailable', { venue })
    kit.faults.start('unavailable', { venue: 'bitstamp' })
    await one.pass(420)
    const refusal = await one.host.call('getRegimeCurrent').catch((error: unknown) => error)
    expect(refusal).to.be.instanceOf(Unavailable)
  })

  it('repeats the snapshot before for every minute that venues never agreed on, and no later bar changes it', async () => {
    const one = await collect()
    await one.work()
    await one.pass(300)
    const { as_of: before, origin: _, ...last } = (await one.history()).snapshots.at(-1)!
    const stop = ['coinbase', 'kraken'].map((venue) => kit.faults.start('price_factor', { venue }))
    await one.pass(17 * 60, 60)
    for (const end of stop) end()
    await one.pass(600, 60)
    const after = (await one.history({ start: before })).snapshots.slice(1)
    const held = after.filter(({ origin }) => origin === 'held')
    expect(held.length).to.be.within(10, 17)
    // What the last hour realized is not known without a bar.
    for (const { as_of: at, origin: __, ...repeated } of held)
      expect(repeated, at).to.deep.equal({ ...last, realized_vol_1h: null })
    // The model takes them for quiet minutes, so the answer tells that it has fewer bars.
    const current = await one.host.call('getRegimeCurrent')
    expect(current.origin).to.equal('live')
    expect(current.coverage).to.be.closeTo(1 - held.length / 60, 1e-4)
    await one.pass(3600, 60)
    expect((await one.host.call('getRegimeCurrent')).coverage).to.equal(1)
  })

  it('says how much of a window it has while no venue answers, and sells none that lies after the newest snapshot', async () => {
    const one = await collect()
    await one.work()
    await one.pass(300, 5)
    expect(await one.history({ limit: 60 })).to.include({ count: 60, coverage: 1 })
    kit.faults.start('unavailable')
    await one.pass(25 * 60)
    const page = await one.history({ limit: 60 })
    const minutes = Math.floor(kit.clock.now() / 60_000)
    const newest = Date.parse(page.newest!) / 60_000
    expect(page.newest).to.equal(page.snapshots.at(-1)!.as_of)
    // The label is repeated for five minutes.
    expect(minutes - newest).to.be.within(19, 21)
    expect(page.count).to.equal(newest - minutes + 60)
    expect(page.coverage)
      .to.be.closeTo(page.count / 60, 0.02)
      .and.be.below(0.7)
    const whole = { limit: 60, provenance: true }
    expect(await one.history(whole)).to.include({ coverage: page.coverage, newest: page.newest })
    const held = await one.history({ limit: 60, origin: 'held' })
    expect(held.coverage).to.be.closeTo(held.count / 60, 0.01)
    const late = await one.history({ limit: 10 }).catch((error: unknown) => error)
    expect(late).to.be.instanceOf(Unavailable)
    expect(String(late)).to.match(/The newest snapshot is of 2026-03-04T12:0\d:00Z: 0 of 4 venues answer\./)
    // What the gateway compares with `fresh`: how far a window goes beyond what is held.
    const now = kit.clock.now()
    const ask = (id: OperationId, { query }: { query: object }) => one.host.call(id, query)
    const ageOf = async (query: Readonly<Record<string, string>>): Promise<number> => {
      const input = { operation: 'getRegimeHistory', params: {}, query, body: undefined } as const
      const report = await one.host.registrations[1]!.freshness!(input, new Date(now), { ask } as never)
      return (now - report!.newest!.getTime()) / 1000
    }
    expect(await ageOf({})).to.be.within(19 * 60, 21 * 60)
    expect(await ageOf({ end: page.newest! })).to.be.closeTo(0, 1)
    expect(await ageOf({ end: new Date(Date.parse(page.newest!) + 600_000).toISOString() })).to.be.closeTo(600, 1)
    kit.faults.clear()
    await one.pass(900)
    expect(await one.history({ limit: 60 })).to.include({ count: 60, coverage: 1 })
  })

  it('grades what was computed live apart from what was not, and finds either in the history', async () => {
    const one = await collect()
    await one.work()
    await one.pass(2 * HOUR, 60)
    const whole = await one.history()
    const [live, past] = [await one.history({ origin: 'live' }), await one.history({ origin: 'backfill' })]
    expect([live.count + past.count, past.count > 1.9 * 1440]).to.deep.equal([whole.count, true])
    expect([...past.snapshots, ...live.snapshots]).to.deep.equal(whole.snapshots)
    const page = await one.history({ origin: 'live', start: live.snapshots[0]!.as_of, limit: 10 })
    expect([page.count, page.next_start]).to.deep.equal([10, live.snapshots[10]!.as_of])
    const facts = (await one.host.registrations[1]!.facts!()) as {
      live_snapshots: number
      graded: string
      backfilled: { snapshots: number }
    }
    expect(facts.graded).to.equal('live')
    expect([facts.live_snapshots, facts.backfilled.snapshots]).to.deep.equal([live.count, past.count])
    const { tables } = await one.host.call('getRegimeMethod')
    expect(tables!.at(-1)!.rows.map((row) => row.slice(0, 3))).to.deep.equal([
      ['BTC-USD', 'live', live.count],
      ['BTC-USD', 'later', past.count],
    ])
  })
})

describe('the regime of a sample', () => {
  it('has no origin, and refuses to search for one', async () => {
    const symbol = { symbol: 'BTC-USD', name: 'Bitcoin', aliases: [], session: '24x7', price: 98_000 }
    const host = await openPluginHost(
      [
        {
          plugin: market,
          settings: { symbols: [{ ...symbol, volatility: 0.5, turnover: 2e9, tick: 0.01 }] },
        },
        { plugin: regime, settings: { symbol: 'BTC-USD', symbols: [], since: '2025-08-06T12:00:00Z' } },
      ],
      { now: () => new Date('2025-08-06T14:00:20Z') },
    )
    await host.run('classify')
    expect(await host.call('getRegimeCurrent')).not.to.have.any.keys('origin', 'computed_at', 'venues', 'warm_up')
    const refusal = await host.call('getRegimeHistory', { limit: 5, origin: 'live' }).catch((error: unknown) => error)
    expect(String(refusal)).to.match(/recorded online only/)
    await host.stop()
  })
})
