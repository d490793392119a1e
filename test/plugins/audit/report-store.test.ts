import { expect } from 'chai'
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
      await reports.save('one', new Date(), report, false)
      await reports.save('one', new Date(), { verdict: 'another' }, true)
      expect(JSON.parse((await reports.find('one', NEVER)) ?? '')).to.deep.equal(report)
      await reports.remove('one')
      await reports.remove('one')
      expect(await reports.find('one', NEVER)).to.equal(null)
      expect(await reports.find("' or 1=1 --", NEVER)).to.equal(null)
    })

    it('are kept for 30 days if they were free, and for ever if they were paid for', async () => {
      await reports.save('free', START, { verdict: 'plausible' }, true)
      await reports.save('paid', START, { verdict: 'reject' }, false)
      await reports.expire(dayOf(29.9))
      expect(await reports.find('free', dayOf(29.9))).to.equal('{"verdict":"plausible"}')
      expect(await reports.find('free', dayOf(30))).to.equal(null)
      await reports.expire(dayOf(30))
      expect(await reports.find('free', START)).to.equal(null)
      expect(await reports.find('paid', NEVER)).to.equal('{"verdict":"reject"}')
    })

    it('are at most so many if they were free: the oldest are deleted', async () => {
      await Promise.all(Array.from({ length: 7 }, (_, day) => reports.save(`day ${day}`, dayOf(day), { day }, true)))
      await reports.expire(dayOf(7), 3)
      const found = await Promise.all(Array.from({ length: 7 }, (_, day) => reports.find(`day ${day}`, dayOf(7))))
      expect(found.map((report) => report !== null)).to.deep.equal([false, false, false, false, true, true, true])
      expect(await reports.find('paid', NEVER)).to.equal('{"verdict":"reject"}')
    })
  })
