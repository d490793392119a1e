import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { migrations, openReportStore, type ReportStore } from '../../../plugins/audit/report-store.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'

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

    it('are returned unchanged until they are deleted for good', async () => {
      const report = { verdict: 'plausible', nested: { list: [1.5, null, '<b>'] } }
      await reports.save('one', new Date(), report)
      await reports.save('one', new Date(), { verdict: 'another' })
      expect(JSON.parse((await reports.find('one')) ?? '')).to.deep.equal(report)
      await reports.remove('one')
      await reports.remove('one')
      expect(await reports.find('one')).to.equal(null)
      expect(await reports.find("' or 1=1 --")).to.equal(null)
    })
  })
