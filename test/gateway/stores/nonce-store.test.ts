import { expect } from 'chai'
import { createRevocations } from '../../../gateway/tokens/revocations.ts'
import { createOnce } from '../../../gateway/stores/nonce-store.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'

for (const [name, make] of Object.entries(DATABASES))
  describe(`a word that counts once, in ${name}`, () => {
    let database: TestDatabase | null
    before(async function () {
      database = await make()
      if (database) return
      process.stdout.write('    (skipped: no server answers)\n')
      this.skip()
    })
    after(() => database?.drop())
    const at = (seconds: number): Date => new Date(Date.UTC(2026, 5, 1) + seconds * 1000)

    it('is the first of one, however many say it at once, in however many processes', async () => {
      const { db, open } = database as TestDatabase
      const processes = [db, open?.() ?? db].map((own) => createOnce(own, () => at(0)))
      const said = await Promise.all(
        processes.flatMap((one) => Array.from({ length: 10 }, () => one.first('a word', at(60)))),
      )
      expect(said.filter(Boolean)).to.have.length(1)
      expect(await processes[0]?.first('another', at(60))).to.equal(true)
    })

    it('is forgotten at its end, and not before', async () => {
      let now = 0
      const once = createOnce((database as TestDatabase).db, () => at(now))
      expect(await once.first('kept', at(10))).to.equal(true)
      now = 9.999
      expect(await once.first('kept', at(10))).to.equal(false)
      now = 10
      expect(await once.first('kept', at(20))).to.equal(true)
    })

    it('is kept beside the tokens that were taken back, which other processes read', async () => {
      const { db, open } = database as TestDatabase
      const [here, there] = [db, open?.() ?? db].map((own) => createRevocations(own, createLog('silent')))
      await here?.revoke('a-token', 'lost')
      await there?.read()
      expect([...(there?.ids ?? [])]).to.deep.equal(['a-token'])
    })
  })
