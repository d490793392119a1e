import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { createBarStore, migrations } from '../../../plugins/market/bar-store.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'

for (const name of ['a SQLite file', 'PostgreSQL'])
  describe(`bars of an earlier release on ${name}`, () => {
    let store: TestDatabase | null
    beforeEach(async function () {
      this.timeout(60_000)
      store = await DATABASES[name]!()
      if (!store) this.skip()
    })
    afterEach(() => store?.drop())

    it('go on under the published series, and those at price zero are set aside and fetched again', async () => {
      const { db } = store!
      await migrate(db, 'market', migrations.slice(0, 2))
      const early = createBarStore(db)
      const bar = (series: number, t_open: number, price: number) => ({
        series,
        t_open,
        open: price,
        high: price,
        low: price,
        close: price,
        volume: 1,
        state: 0,
        known_at: t_open + 60,
      })
      const [coinbase, binance] = [
        await early.series('coinbase', 'BTC-USD', 60),
        await early.series('binance', 'BTC-USD', 60),
      ]
      const window = { series: coinbase.id, t_from: 0, t_to: 18_000, status: 'done', attempts: 0, next_at: 0 }
      await db('market_windows').insert(window)
      await db('market_bars').insert([bar(coinbase.id, 60, 100), bar(coinbase.id, 120, 0), bar(binance.id, 60, 99)])
      await migrate(db, 'market', migrations)
      const now = createBarStore(db)
      const published = await now.published('median', 'BTC-USD', 60)
      expect(published.id).to.equal(coinbase.id)
      expect(await now.published('median', 'BTC-USD', 60)).to.deep.equal(published)
      const { time, close, venues } = await now.readFirst(published, 0, 600)
      expect([[...time], [...close], [...venues]]).to.deep.equal([[60], [100], [0]])
      const gap = await db('market_windows').where('status', 'gap').first('t_from', 't_to', 'attempts')
      expect(gap).to.deep.equal({ t_from: 120, t_to: 180, attempts: 0 })
      expect(await db('market_rejected_rows').first('venue', 't_open', 'reason')).to.deep.equal({
        venue: 'coinbase',
        t_open: 120,
        reason: 'not_positive',
      })
    })

    it('leave room for rejected rows, the newest ten thousand', async () => {
      const { db } = store!
      await migrate(db, 'market', migrations)
      const bars = createBarStore(db)
      const rejected = (time: number | null) => ({ time, reason: 'not_a_number' as const, row: '[null]' })
      await bars.noteRejected('coinbase', 'BTC-USD', [rejected(60), rejected(null)], 100)
      await bars.noteRejected('coinbase', 'BTC-USD', [rejected(60)], 200)
      expect(await bars.rejectedRows()).to.equal(2)
      const key = { venue: 'kraken', symbol: 'BTC-USD' }
      const many = (from: number, count: number) => Array.from({ length: count }, (_, i) => rejected((from + i) * 60))
      const stored = many(1, 9_990).map(({ time, ...row }) => ({ ...key, t_open: time!, ...row, seen_at: 300 }))
      for (let at = 0; at < stored.length; at += 500)
        await db('market_rejected_rows').insert(stored.slice(at, at + 500))
      // Rows that come again are the newest, and take nobody's place.
      await bars.noteRejected('coinbase', 'BTC-USD', [rejected(60)], 400)
      for (const seenAt of [401, 402]) await bars.noteRejected('kraken', 'BTC-USD', many(5_000, 100), seenAt)
      expect(await bars.rejectedRows()).to.equal(9_992)
      await bars.noteRejected('kraken', 'BTC-USD', many(20_000, 11), 500)
      expect(await bars.rejectedRows()).to.equal(10_000)
      const timesOf = async (venue: string) => {
        const rows = await db('market_rejected_rows').where({ venue }).orderBy('t_open').select('t_open')
        return rows.map(({ t_open }: { t_open: number }) => t_open)
      }
      // The row without a time was the oldest, then the first two of the second venue.
      expect(await timesOf('coinbase')).to.deep.equal([60])
      expect((await timesOf('kraken')).slice(0, 2)).to.deep.equal([180, 240])
    })

    it('keep how venues fail until they answer', async () => {
      const { db } = store!
      await migrate(db, 'market', migrations)
      const bars = createBarStore(db)
      const record = { source: 'kraken', item: 'BTC-USD', failures: 2, status: 403, reason: 'no', since: 5, until: 50 }
      await bars.keepHealth({ ...record, failures: 1 })
      await bars.keepHealth(record)
      expect(await bars.health()).to.deep.equal([record])
      await bars.keepHealth({ ...record, failures: 0 })
      expect(await bars.health()).to.deep.equal([])
    })
  })
