import { expect } from 'chai'
import { createCallCounts, endOf } from '../../../gateway/stores/call-counts.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'

for (const [name, create] of Object.entries(DATABASES))
  describe(`the call counts in ${name}`, () => {
    let database: TestDatabase | null
    before(async function () {
      database = await create()
      if (database) return
      process.stdout.write('    (skipped: no server answers)\n')
      this.skip()
    })
    after(() => database?.drop())
    const at = (seconds: number): Date => new Date(Date.UTC(2026, 5, 1, 12) + seconds * 1000)
    const limit = { calls: 7, per: 'minute' } as const

    it('count as many calls as the limit, however many processes count at the same time', async () => {
      const { db, open } = database as TestDatabase
      const processes = [db, open?.() ?? db].map((connection) => createCallCounts(connection, () => at(0)))
      const counted = await Promise.all(
        processes.flatMap((process) => Array.from({ length: 10 }, () => process.count('a', 'caller', limit))),
      )
      const within = counted.filter(({ isWithin }) => isWithin)
      expect(within.map(({ left }) => left)).to.have.members([0, 1, 2, 3, 4, 5, 6])
      expect(counted.every(({ renewsAt }) => renewsAt.getTime() === at(60).getTime())).to.equal(true)
    })

    it('count each caller and each name by itself', async () => {
      const counts = createCallCounts((database as TestDatabase).db, () => at(0))
      const once = { calls: 1, per: 'hour' } as const
      for (const [each, caller] of [
        ['b', 'one'],
        ['b', 'two'],
        ['c', 'one'],
      ] as const) {
        expect((await counts.count(each, caller, once)).isWithin).to.equal(true)
        expect((await counts.count(each, caller, once)).isWithin).to.equal(false)
      }
    })

    it('give a call back once, in the period in which it was counted', async () => {
      let now = 0
      const counts = createCallCounts((database as TestDatabase).db, () => at(now))
      const once = { calls: 1, per: 'minute' } as const
      const first = await counts.count('d', 'caller', once)
      await first.giveBack()
      await first.giveBack()
      const second = await counts.count('d', 'caller', once)
      expect(second.isWithin).to.equal(true)
      expect((await counts.count('d', 'caller', once)).isWithin).to.equal(false)
      now = 60
      expect((await counts.count('d', 'caller', once)).isWithin).to.equal(true)
      await second.giveBack()
      expect((await counts.count('d', 'caller', once)).isWithin).to.equal(false)
    })

    it('forget what has ended', async () => {
      let now = 1_000_000
      const { db } = database as TestDatabase
      const counts = createCallCounts(db, () => at(now))
      await counts.count('e', 'caller', limit)
      now += 600
      await counts.count('f', 'caller', limit)
      expect(await db('call_counts').where('ends_at', '<', at(now - 120).getTime())).to.deep.equal([])
    })
  })

describe('the period of a limit', () => {
  it('ends on the clock, in UTC', () => {
    const now = new Date('2026-11-30T23:59:30.500Z')
    expect(endOf('minute', now).toISOString()).to.equal('2026-12-01T00:00:00.000Z')
    expect(endOf('day', new Date('2026-11-30T00:00:00Z')).toISOString()).to.equal('2026-12-01T00:00:00.000Z')
    expect(endOf('hour', new Date('2026-11-30T13:00:00.001Z')).toISOString()).to.equal('2026-11-30T14:00:00.000Z')
  })
})
