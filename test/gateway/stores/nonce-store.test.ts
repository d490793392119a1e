import { expect } from 'chai'
import { createRevocations } from '../../../gateway/tokens/revocations.ts'
import { createNonceStore } from '../../../gateway/stores/nonce-store.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'

for (const [name, create] of Object.entries(DATABASES))
  describe(`the nonce store in ${name}`, () => {
    let database: TestDatabase | null
    before(async function () {
      database = await create()
      if (database) return
      process.stdout.write('    (skipped: no server answers)\n')
      this.skip()
    })
    after(() => database?.drop())
    const at = (seconds: number): Date => new Date(Date.UTC(2026, 5, 1) + seconds * 1000)

    it('accepts a nonce once, however many processes use it at the same time', async () => {
      const { db, open } = database as TestDatabase
      const processes = [db, open?.() ?? db].map((connection) => createNonceStore(connection, () => at(0)))
      const accepted = await Promise.all(
        processes.flatMap((process) => Array.from({ length: 10 }, () => process.use('a nonce', at(60)))),
      )
      expect(accepted.filter(Boolean)).to.have.length(1)
      expect(await processes[0]?.use('another', at(60))).to.equal(true)
    })

    it('forgets a nonce when it expires, and not before', async () => {
      let now = 0
      const nonces = createNonceStore((database as TestDatabase).db, () => at(now))
      expect(await nonces.use('kept', at(10))).to.equal(true)
      now = 9.999
      expect(await nonces.use('kept', at(10))).to.equal(false)
      now = 10
      expect(await nonces.use('kept', at(20))).to.equal(true)
    })

    it('shares the database with revoked tokens, which other processes read', async () => {
      const { db, open } = database as TestDatabase
      const [here, there] = [db, open?.() ?? db].map((connection) => createRevocations(connection, createLog('silent')))
      await here?.revoke('a-token', 'lost')
      await there?.read()
      expect([...(there?.ids ?? [])]).to.deep.equal(['a-token'])
    })
  })
