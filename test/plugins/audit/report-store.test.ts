import { expect } from 'chai'
import fc from 'fast-check'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { migrations, openReportStore, type ReportStore } from '../../../plugins/audit/report-store.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'

const DAY_MS = 86_400_000
const START = new Date('2026-03-01T00:00:00Z')
const dayOf = (days: number): Date => new Date(START.getTime() + days * DAY_MS)
/** No paid report has expired by then. */
const NEVER = dayOf(100_000)

for (const [name, open] of Object.entries(DATABASES))
  describe(`the reports of audits in ${name}`, () => {
    let database: TestDatabase | null
    let reports: ReportStore
    before(async function () {
      database = await open()
      if (!database) return this.skip()
      await migrate(database.db, 'audit', migrations)
      reports = openReportStore(database.db)
    })
    after(() => database?.drop())

    it('are stored under an id of at least 128 bits that nobody else can compute', async () => {
      const id = await reports.idFor('call', 'hash')
      expect(Buffer.from(id, 'base64url').length * 8).to.be.at.least(128)
      expect(id).to.match(/^[A-Za-z0-9_-]+$/)
      const ids = await Promise.all(Array.from({ length: 100 }, (_, i) => reports.idFor(`call${i}`, 'hash')))
      expect(new Set([id, ...ids]).size).to.equal(101)
      expect(await reports.idFor('call', 'other')).not.to.equal(id)
    })

    it('have the same id for the same call, even after a restart', async () => {
      const reopened = openReportStore(database!.db)
      expect(await reopened.idFor('call', 'hash')).to.equal(await reports.idFor('call', 'hash'))
    })

    it('have their ids again once the database answers again', async () => {
      const { db } = database!
      const reopened = openReportStore(db)
      await db.schema.renameTable('audit_key', 'audit_key_away')
      const failed = await reopened.idFor('call', 'hash').catch((error: unknown) => error)
      await db.schema.renameTable('audit_key_away', 'audit_key')
      expect(failed).to.be.instanceOf(Error)
      expect(await reopened.idFor('call', 'hash')).to.equal(await reports.idFor('call', 'hash'))
    })

    it('are returned unchanged until they are deleted for good', async () => {
      const report = { verdict: 'plausible', nested: { list: [1.5, null, '<b>'] } }
      await reports.save('one', new Date(), report, { wallet: '0xA' })
      await reports.save('one', new Date(), { verdict: 'another' }, { client: 'somebody' })
      expect(JSON.parse((await reports.find('one', NEVER)) ?? '')).to.deep.equal(report)
      await reports.remove('one')
      await reports.remove('one')
      expect(await reports.find('one', NEVER)).to.equal(null)
      expect(await reports.find("' or 1=1 --", NEVER)).to.equal(null)
    })

    it('are kept for 30 days if they were free, and for ever if they were paid for', async () => {
      await reports.save('free', START, { verdict: 'plausible' }, { client: 'somebody' })
      await reports.save('paid', START, { verdict: 'reject' }, { callId: 'call' })
      await reports.settle(async () => new Map([['call', true]]))
      await reports.expire(dayOf(29.9))
      expect(await reports.find('free', dayOf(29.9))).to.equal('{"verdict":"plausible"}')
      expect(await reports.find('free', dayOf(30))).to.equal(null)
      await reports.expire(dayOf(30))
      expect(await reports.find('free', START)).to.equal(null)
      expect(await reports.find('paid', NEVER)).to.equal('{"verdict":"reject"}')
    })

    it('of plans are the newest of their wallet, and make no room for those of others, nor for those that calls paid for', async () => {
      const { db } = database!
      await db('audit_reports').delete()
      const small = openReportStore(db, { perClient: 2, perWallet: 3 })
      for (const wallet of ['0xA', '0xB'])
        for (let nth = 0; nth < (wallet === '0xA' ? 2 : 10); nth += 1)
          await small.save(`${wallet} ${nth}`, dayOf(nth), { nth }, { wallet })
      await small.save('0xb again', dayOf(10), {}, { wallet: '0xb' })
      for (let nth = 0; nth < 5; nth += 1) await small.save(`paid ${nth}`, START, { nth }, { callId: `0xb ${nth}` })
      await small.settle(async (calls) => new Map(calls.map((call) => [call, true])))
      await small.save('0xb last', dayOf(11), {}, { wallet: '0xb' })
      const kept = await db<{ rid: string }>('audit_reports').orderBy('rid').select('rid')
      const ofPlans = ['0xA 0', '0xA 1', '0xB 9', '0xb again', '0xb last']
      const paid = [0, 1, 2, 3, 4].map((nth) => `paid ${nth}`)
      expect(kept.map(({ rid }) => rid)).to.deep.equal([...ofPlans, ...paid])
    })

    it('that calls pay for stay once these were charged, go if they never will be, and wait otherwise', async () => {
      const { db } = database!
      await db('audit_reports').delete()
      // More than are asked about at once.
      const rows = Array.from({ length: 1_201 }, (_, nth) => {
        return { rid: `report ${nth}`, created: 0, report: '{}', call_id: `call ${nth}` }
      })
      await db.batchInsert('audit_reports', rows, 100)
      await reports.save('free', START, {}, { client: 'somebody' })
      const outcomes: (boolean | undefined)[] = [true, false, undefined]
      const outcomeOf = (id: string): boolean | undefined => outcomes[Number(id.split(' ')[1]) % 3]
      const asked: string[] = []
      const charged = async (calls: readonly string[]) => {
        asked.push(...calls)
        return new Map(calls.flatMap((call) => (outcomeOf(call) === undefined ? [] : [[call, outcomeOf(call)!]])))
      }
      const kept = async (): Promise<ReadonlySet<string>> =>
        new Set((await db<{ rid: string }>('audit_reports').select('rid')).map(({ rid }) => rid))
      await reports.settle(charged)
      expect(asked).to.have.members(rows.map(({ call_id }) => call_id))
      const notUnpaid = rows.map(({ rid }) => rid).filter((rid) => outcomeOf(rid) !== false)
      expect(await kept()).to.deep.equal(new Set(['free', ...notUnpaid]))
      // Only those that were open are asked about again. Nothing can take the others away.
      asked.length = 0
      const wereOpen = rows.filter(({ rid }) => outcomeOf(rid) === undefined)
      outcomes.fill(false)
      await reports.settle(charged)
      expect(asked).to.have.members(wereOpen.map(({ call_id }) => call_id))
      const paid = rows.map(({ rid }) => rid).filter((rid) => Number(rid.split(' ')[1]) % 3 === 0)
      expect(await kept()).to.deep.equal(new Set(['free', ...paid]))
    })

    it('of an earlier release stay for 30 days, and their places are taken until then', async () => {
      const { db } = database!
      const small = openReportStore(db, { perClient: 2, total: 3 })
      await db('audit_reports').delete()
      await db('audit_reports').insert({ rid: 'old', created: 0, report: '{}', expires: dayOf(30).getTime() })
      for (const day of [0, 1, 2, 3]) await small.save(`${day}`, dayOf(day), { day }, { client: 'somebody' })
      expect(await small.find('old', dayOf(29))).to.equal('{}')
      expect(await small.fullUntil('other', dayOf(3))).to.deep.equal(dayOf(30))
      expect(await small.fullUntil('somebody', dayOf(3)), 'a full share takes no new place').to.equal(null)
      expect(await small.fullUntil('other', dayOf(30))).to.equal(null)
    })

    it('are at most a share if they are stored at once, also by several processes', async () => {
      const { db, open: connect } = database!
      await db('audit_reports').delete()
      const processes = [db, connect?.() ?? db].map((one) => openReportStore(one, { perClient: 3, total: 100 }))
      await Promise.all(
        Array.from({ length: 20 }, (_, at) => processes[at % 2]!.save(`${at}`, START, { at }, { client: 'somebody' })),
      )
      expect(await db('audit_reports').where({ client: 'somebody' })).to.have.length.within(1, 3)
      // A clock that stands still gives all of them the same age.
      await processes[0]!.save('last', START, { at: 'last' }, { client: 'somebody' })
      expect(await processes[0]!.find('last', START)).not.to.equal(null)
    })

    it('are taken away by nobody else: the newest of each client stay for 30 days, whatever others store', async function () {
      this.timeout(60_000)
      const { db } = database!
      const limits = { perClient: 3, total: 7 }
      const small = openReportStore(db, limits)
      const step = fc.record({
        client: fc.constantFrom('victim', 'attacker', 'attacker', 'another', 'a third'),
        hours: fc.integer({ min: 1, max: 200 }),
        expires: fc.boolean(),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
          await db('audit_reports').delete()
          let at = START.getTime()
          const saved: { readonly rid: string; readonly client: string; readonly until: number }[] = []
          for (const [nth, { client, hours, expires }] of steps.entries()) {
            at += hours * 3_600_000
            const now = new Date(at)
            if (expires) await small.expire(now)
            if (await small.fullUntil(client, now)) continue
            await small.save(`${nth}`, now, { nth }, { client })
            saved.unshift({ rid: `${nth}`, client, until: at + 30 * DAY_MS })
            const kept = saved.filter((one, nth) => {
              const newer = saved.slice(0, nth).filter((other) => other.client === one.client)
              return newer.length < limits.perClient && one.until > at
            })
            const found = await Promise.all(saved.map(async ({ rid }) => (await small.find(rid, now)) !== null))
            expect(saved.filter((_, nth) => found[nth])).to.deep.equal(kept)
            expect(kept.length).to.be.at.most(limits.total)
          }
        }),
        { numRuns: name === 'memory' ? 200 : 25 },
      )
    })
  })
