/** Counts that are kept with the data instead of being computed, on every database. */
import { expect } from 'chai'
import type { OpenDatabase } from '../../gateway/stores/database.ts'
import { migrate } from '../../gateway/stores/migrations.ts'
import { DirectoryStore } from '../../plugins/directory/directory-store.ts'
import { migrations as directoryTables } from '../../plugins/directory/directory-tables.ts'
import { idOf } from '../../plugins/directory/listing.ts'
import { UNVISITED } from '../../plugins/directory/liveness.ts'
import { readBazaar } from '../../plugins/directory/sources/bazaar.ts'
import { createBarStore, migrations as marketTables } from '../../plugins/market/bar-store.ts'
import { encodeSnapshots, migrations as regimeTables, openSnapshots } from '../../plugins/regime/snapshots.ts'
import { createReader } from '../../plugins/potus/store/event-reader.ts'
import { migrations as potusTables } from '../../plugins/potus/store/tables.ts'
import { DATABASES, type TestDatabase } from '../contracts/databases.ts'
import { listingItem, NOON } from './directory/online-directory.ts'
import { rssOf, openTestFeed } from './potus/test-feed.ts'
import { snapshotAt } from './regime/snapshot.ts'

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

for (const name of ['a SQLite file', 'PostgreSQL'])
  describe(`kept counts on ${name}`, function () {
    this.timeout(60_000)
    let store: TestDatabase | null
    let db: OpenDatabase
    beforeEach(async function () {
      store = await DATABASES[name]!()
      if (!store) return this.skip()
      db = store.db
    })
    afterEach(() => store?.drop())
    const rows = async (table: string, where: object = {}): Promise<number> =>
      ((await db(table).where(where).count({ n: '*' }).first()) as { n: number }).n

    it('count each snapshot once when several processes store overlapping minutes at the same time', async () => {
      await migrate(db, 'regime', regimeTables)
      const processes = [db, store!.open!(), store!.open!()]
      const series = await Promise.all(processes.map((one) => openSnapshots(one, 'BTC-USD', 'sample')))
      expect(await series[0]!.extent()).to.deep.equal({ count: 0, first: null, last: null })
      for (let round = 0; round < 10; round += 1)
        await Promise.all(
          series.map((one, nth) => {
            const minutes = range(round * 20 + nth * 5, round * 20 + nth * 5 + 30)
            return one.add(encodeSnapshots(minutes.map((minute) => snapshotAt(minute * 60))))
          }),
        )
      const other = await openSnapshots(db, 'ETH-USD', 'sample')
      await other.add(encodeSnapshots([snapshotAt(60)]))
      const count = (await rows('regime_snapshots')) - 1
      for (const one of series) expect(await one.extent()).to.deep.equal({ count, first: 0, last: 219 * 60 })
      expect(await other.extent()).to.deep.equal({ count: 1, first: 60, last: 60 })
    })

    it('start from what an earlier release stored', async () => {
      await migrate(db, 'regime', regimeTables.slice(0, 1))
      await migrate(db, 'market', marketTables.slice(0, 1))
      await migrate(db, 'directory', directoryTables.slice(0, 1))
      await migrate(db, 'potus', potusTables.slice(0, 1))
      const [first] = (await db('regime_series')
        .insert({ symbol: 'BTC-USD', model: 'har-schmitt/1', origin: 'sample' })
        .returning('id')) as { id: number }[]
      // The first release recorded nothing of how a snapshot came about.
      const recorded = Object.entries(snapshotAt(0)).filter(
        ([name]) => !/^(origin|computed_at|venues|spread_bps|model|forecast_vol_.*|reference_vol)$/.test(name),
      )
      const early = Object.fromEntries(recorded)
      await db('regime_snapshots').insert(
        range(0, 7).map((at) => ({ ...early, series: first!.id, as_of: at, known_at: at })),
      )
      const [bars] = (await db('market_series')
        .insert({ venue: 'venue', symbol: 'BTC-USD', interval_seconds: 60 })
        .returning('id')) as { id: number }[]
      const noted = range(0, 5).map((at) => ({ series: bars!.id, t_open: at, kind: 'venue_difference', detail: '' }))
      await db('market_quality').insert(noted)
      await migrate(db, 'regime', regimeTables)
      await migrate(db, 'market', marketTables)
      await migrate(db, 'directory', directoryTables)
      await migrate(db, 'potus', potusTables)
      expect(await (await openSnapshots(db, 'BTC-USD', 'sample')).extent()).to.deep.equal({
        count: 7,
        first: 0,
        last: 6,
      })
      expect(await createBarStore(db).qualityNotes()).to.equal(5)
      expect(await new DirectoryStore(db).facts()).to.deep.equal({ records: 0, alive: 0 })
      expect(await createReader(db).countAll(Date.now())).to.equal(0)
    })

    it('count a difference between venues once, and none after the bars were deleted', async () => {
      await migrate(db, 'market', marketTables)
      const bars = createBarStore(db)
      const series = await bars.series('venue', 'BTC-USD', 60)
      const note = (at: number) => ({ t_open: at, kind: 'venue_difference', detail: `${at}` })
      await bars.noteQuality(series, [note(60), note(120)])
      await Promise.all(
        [db, store!.open!()].map((one) => createBarStore(one).noteQuality(series, [note(120), note(180)])),
      )
      expect(await bars.qualityNotes()).to.equal(3)
      await bars.clear()
      expect(await bars.qualityNotes()).to.equal(0)
    })

    it('count the records of the directory that are listed, and those that are alive', async () => {
      await migrate(db, 'directory', directoryTables)
      const directory = new DirectoryStore(db)
      const urls = range(0, 6).map((n) => `https://s${n}.example.com/`)
      const page = (listed: readonly string[], sweep: number) => {
        const { listings } = readBazaar(
          { items: listed.map((url) => listingItem(url, { description: `${sweep}` })) },
          NOON,
        )!
        return directory.savePage({ source: 'a', rank: 1, listings, sweep, at: NOON + sweep, visitAt: NOON })
      }
      const isCounted = async (): Promise<void> => {
        const listed = { superseded_at: null, hidden: 0 }
        const alive = await rows('directory_records', { ...listed, alive: 1 })
        expect(await directory.facts()).to.deep.equal({ records: await rows('directory_records', listed), alive })
      }
      await page(urls, 1)
      await isCounted()
      const visited = urls.map((url, n) => ({
        id: idOf({ url, tool: null }),
        health: { ...UNVISITED, status: n % 2 ? ('alive' as const) : ('dead' as const) },
        isGood: n % 2 === 1,
        next: null,
      }))
      await Promise.all([
        directory.visited(visited.slice(0, 3), NOON + 2),
        directory.visited(visited.slice(3), NOON + 2),
      ])
      await isCounted()
      await Promise.all([page(urls.slice(0, 4), 3), page(urls.slice(0, 4), 4)])
      await directory.conclude('a', 4, NOON + 5)
      await isCounted()
      expect((await directory.facts()).records).to.be.lessThan(6)
      await directory.clear()
      await isCounted()
    })

    it('count the events of the feed as of any moment', async () => {
      const time = Date.UTC(2026, 4, 1)
      const feed = await openTestFeed({ time, db })
      for (let n = 0; n < 12; n += 1) {
        feed.time += 60_000
        const items = range(0, n).map((k) => ({ key: `k${k}`, text: `Release ${k}.`, at: time + k * 60_000 }))
        await feed.poll('wh.news', rssOf([...items, { key: 'old', text: 'Old.', at: time - 1e9 }]))
      }
      const reader = createReader(db)
      for (let at = time - 2e9; at <= feed.time + 60_000; at += at < time ? 2e8 : 30_000)
        expect(await reader.countAll(at)).to.equal(await reader.count(0, at))
      expect(await reader.countAll(feed.time)).to.equal(12)
    })
  })
