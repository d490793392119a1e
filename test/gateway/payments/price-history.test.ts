import { expect } from 'chai'
import type { Operation } from '../../../gateway/plugin/catalog.ts'
import { openPriceHistory, type PriceHistory } from '../../../gateway/payments/price-history.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { catalogOf, OPERATION } from '../../support/operation.ts'

const priced = (id: string, price: bigint | null, changes: Partial<Operation> = {}): Operation => ({
  ...OPERATION,
  id,
  price,
  displayRoute: `GET /v1/${id}`,
  ...changes,
})
const editionOf = (version: string, ...operations: readonly Operation[]) => ({ ...catalogOf(...operations), version })

for (const [name, create] of Object.entries(DATABASES))
  describe(`the price history in ${name}`, () => {
    let database: TestDatabase
    let at: number
    let prices: PriceHistory
    const now = (): Date => new Date(at)
    const open = (db = database.db): Promise<PriceHistory> => openPriceHistory({ db, now, graceSeconds: 300 })
    const steps = async () =>
      (await prices.history({ limit: 100 })).map(({ operation, before, after, version }) => [
        operation,
        before,
        after,
        version,
      ])

    beforeEach(async function () {
      const created = await create()
      if (!created) {
        process.stdout.write(`    (skipped: ${name} does not answer)\n`)
        return this.skip()
      }
      database = created
      at = Date.parse('2026-06-01T00:00:00Z')
      prices = await open()
    })
    afterEach(() => database?.drop())

    it('lists the price changes of each edition, newest first', async () => {
      await prices.record(editionOf('v1', priced('a', 5000n), priced('b', null)), true)
      at += 1000
      await prices.record(editionOf('v2', priced('a', 6000n), priced('b', null)), true)
      at += 1000
      await prices.record(editionOf('v3', priced('a', 6000n), priced('b', 10n)), true)
      expect(await steps()).to.deep.equal([
        ['b', 0n, 10n, 'v3'],
        ['a', 5000n, 6000n, 'v2'],
        ['a', null, 5000n, 'v1'],
      ])
      expect((await prices.history({ limit: 1 })).map((change) => change.at.toISOString())).to.deep.equal([
        '2026-06-01T00:00:02.000Z',
      ])
      expect(await prices.history({ limit: 9, route: 'GET /v1/a' })).to.have.length(2)
    })

    it('lists retired and removed routes as no longer sold, but not those that are only disabled', async () => {
      await prices.record(editionOf('v1', priced('a', 5000n), priced('b', 7n)), true)
      at += 1000
      await prices.record(editionOf('v2', priced('a', 5000n)), false)
      expect(await steps()).to.have.length(2)
      await prices.record(editionOf('v3', priced('a', 5000n, { retired: true })), true)
      expect((await steps()).slice(0, 2)).to.deep.equal([
        ['a', 5000n, null, 'v3'],
        ['b', 7n, null, 'v3'],
      ])
      at += 1000
      await prices.record(editionOf('v4', priced('a', 5000n), priced('b', 7n)), true)
      expect((await steps())[0]).to.deep.equal(['a', null, 5000n, 'v4'])
    })

    it('keeps former prices valid for the grace period, but not a former price of zero', async () => {
      const operation = priced('a', 6000n)
      await prices.record(editionOf('v1', priced('a', null)), true)
      await prices.record(editionOf('v2', priced('a', 5000n)), true)
      at += 100_000
      await prices.record(editionOf('v3', priced('a', 4000n)), true)
      at += 100_000
      await prices.record(editionOf('v4', operation), true)
      expect([...prices.former(operation)]).to.deep.equal([
        [5000n, 'v2'],
        [4000n, 'v3'],
      ])
      at += 200_000
      expect([...prices.former(operation)]).to.deep.equal([[4000n, 'v3']])
      at += 100_000
      expect([...prices.former(operation)]).to.deep.equal([])
    })

    it('is available to a process that starts later', async () => {
      await prices.record(editionOf('v1', priced('a', 5000n)), true)
      await prices.record(editionOf('v2', priced('a', 6000n)), true)
      const later = await open(database.open?.() ?? database.db)
      await later.record(editionOf('v2', priced('a', 6000n)), true)
      expect([...later.former(priced('a', 6000n))]).to.deep.equal([[5000n, 'v1']])
      expect(await steps()).to.have.length(2)
    })

    it('stores a change once if several processes see it at the same time', async () => {
      const others = await Promise.all([1, 2, 3].map(() => open(database.open?.() ?? database.db)))
      const all = [prices, ...others]
      await Promise.all(all.map((process) => process.record(editionOf('v1', priced('a', 5000n)), true)))
      await Promise.all(all.map((process) => process.record(editionOf('v2', priced('a', 6000n)), true)))
      expect(await steps()).to.have.length(2)
      for (const process of all) expect([...process.former(priced('a', 6000n)).keys()]).to.deep.equal([5000n])
    })

    it('keeps a change that another process stored after this one had read the catalog', async () => {
      const other = await open(database.open?.() ?? database.db)
      await prices.record(editionOf('v1', priced('a', 5000n)), true)
      at += 1000
      const readAt = now()
      at += 1000
      await prices.record(editionOf('v2', priced('a', 6000n)), true)
      await other.record(editionOf('v1', priced('a', 5000n)), true, readAt)
      expect(await steps()).to.have.length(2)
      expect([...other.former(priced('a', 6000n)).keys()]).to.deep.equal([5000n])
      await other.record(editionOf('v1', priced('a', 5000n)), true)
      expect((await steps())[0]).to.deep.equal(['a', 6000n, 5000n, 'v1'])
    })

    it('stores a thousand prices at once', async () => {
      const many = Array.from({ length: 1000 }, (_, index) => priced(`p${index}`, BigInt(index + 1)))
      await prices.record(editionOf('v1', ...many), true)
      expect(await prices.history({ limit: 2000 })).to.have.length(1000)
    })
  })
