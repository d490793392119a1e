import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import type { Poll } from '../../../plugins/funding/funding-rate.ts'
import { createRateStore, migrations, type RateStore } from '../../../plugins/funding/rate-store.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'

const poll = (reason: string): Poll => ({
  rates: [],
  quarantined: [{ instrument: 'X', rate: null, reason }],
  untold: [],
})

for (const name of ['memory', 'PostgreSQL'])
  describe(`the answers of venues stored in ${name}`, () => {
    let database: TestDatabase | null
    let store: RateStore
    before(async function () {
      database = await DATABASES[name]!()
      if (!database) return this.skip()
      const { db } = database
      await migrate(db, 'funding', migrations)
      store = createRateStore(db)
      await store.add('gate', 100.25, poll('first'))
      await store.add('gate', 160.5, { error: 'no answer' })
      await store.add('gate', 220.75, poll('second'))
      await store.add('okx', 110, { error: 'no answer' })
    })
    after(() => database?.drop())

    const at = async (asOf: number) => {
      const { poll: found, fetched, error } = await store.last('gate', asOf)
      return [found?.quarantined[0]?.reason ?? null, fetched, error]
    }

    it('are visible as they were known at a given time, to the millisecond', async () => {
      expect(await at(100.249)).to.deep.equal([null, null, null])
      expect(await at(100.25)).to.deep.equal(['first', 100.25, null])
      expect(await at(160.5)).to.deep.equal(['first', 100.25, 'no answer'])
      expect(await at(300)).to.deep.equal(['second', 220.75, null])
      expect(await store.last('okx', 300)).to.deep.equal({ poll: null, fetched: null, error: 'no answer' })
    })

    it('are deleted once superseded, except the last one', async () => {
      await store.forget(220)
      expect(await at(220)).to.deep.equal(['first', 100.25, 'no answer'])
      await store.forget(1000)
      expect(await at(220)).to.deep.equal([null, null, null])
      expect(await at(1000)).to.deep.equal(['second', 220.75, null])
    })
  })
