import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { idOf } from '../../../plugins/directory/listing.ts'
import { UNVISITED } from '../../../plugins/directory/liveness.ts'
import { readBazaar } from '../../../plugins/directory/sources/bazaar.ts'
import { DirectoryStore } from '../../../plugins/directory/directory-store.ts'
import { migrations } from '../../../plugins/directory/directory-tables.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { listingItem, NOON } from './online-directory.ts'

for (const name of ['memory', 'PostgreSQL'])
  describe(`a sweep and a visit that change a directory in ${name} at the same time`, () => {
    let database: TestDatabase | null
    before(async function () {
      database = await DATABASES[name]!()
      if (!database) return this.skip()
    })
    after(() => database?.drop())

    it('leave one version of each record with the changes of both', async () => {
      const { db } = database!
      await migrate(db, 'directory', migrations)
      const store = new DirectoryStore(db)
      const savePage = (source: string, round: number) => {
        const items = Array.from({ length: 12 }, (_, i) =>
          listingItem(`https://s${i}.example.com/`, { description: `${source} ${round}` }),
        )
        const { listings } = readBazaar({ items: round % 2 ? items : items.toReversed() }, NOON)!
        return store.savePage({
          source,
          rank: source === 'a' ? 1 : 2,
          listings,
          sweep: round,
          at: NOON + round,
          visitAt: NOON,
        })
      }
      await savePage('a', 0)
      const ids = Array.from({ length: 12 }, (_, i) => idOf({ url: `https://s${i}.example.com/`, tool: null }))
      for (let round = 1; round <= 8; round += 1) {
        const visits = ids.map((id) => {
          const health = { ...UNVISITED, http_status: 400 + round }
          return store.visited([{ id, health, isGood: true, next: null }], NOON + round)
        })
        await Promise.all([savePage('a', round), ...visits, savePage('b', round)])
        const listed = await db('directory_records').whereNull('superseded_at').select('id')
        expect(listed, `round ${round}`).to.have.length(12)
      }
      const current = (await db('directory_records').whereNull('superseded_at').select('id', 'record')) as {
        id: string
        record: string
      }[]
      expect(current.map(({ id }) => id).toSorted((a, b) => a.localeCompare(b))).to.deep.equal(
        ids.toSorted((a, b) => a.localeCompare(b)),
      )
      for (const { record } of current) {
        const { description, liveness, sources } = JSON.parse(record) as {
          description: string
          liveness: { http_status: number; checks_30d: number }
          sources: { id: string }[]
        }
        expect([description, liveness.http_status, liveness.checks_30d]).to.deep.equal(['a 8', 408, 8])
        expect(sources.map(({ id }) => id)).to.deep.equal(['a', 'b'])
      }
    })
  })
