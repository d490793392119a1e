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
      await db('market_rejected_rows').insert({
        id: 20_000,
        venue: 'kraken',
        symbol: 'BTC-USD',
        t_open: 60,
        reason: 'not_a_number',
        row: '',
        seen_at: 1,
      })
      await bars.noteRejected('kraken', 'BTC-USD', [rejected(60)], 300)
      expect(await bars.rejectedRows()).to.equal(1)
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
