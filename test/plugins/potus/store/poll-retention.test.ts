import { expect } from 'chai'
import { migrate } from '../../../../gateway/stores/migrations.ts'
import { prunePolls } from '../../../../plugins/potus/store/poll-retention.ts'
import { migrations } from '../../../../plugins/potus/store/tables.ts'
import { DATABASES } from '../../../contracts/databases.ts'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 4, 1)
const SIGNAL = new AbortController().signal

for (const [name, open] of Object.entries(DATABASES))
  describe(`the log of polls in ${name}`, () => {
    it('keeps bodies for good, or exactly as long as the setting says, and records always', async function () {
      const database = await open()
      if (!database) this.skip()
      try {
        const { db } = database
        await migrate(db, 'potus', migrations)
        const poll = (age: number, body: Buffer | null) => ({ source: 'a', at: NOW - age, outcome: body ? 'ok' : 'same', url: 'u', parser: 'p', body }) // prettier-ignore
        const ages = Array.from({ length: 60 }, (_, n) => n * DAY)
        const rows = ages.flatMap((age) => [...Array.from({ length: 12 }, () => poll(age, Buffer.from('x'))), poll(age, null)]) // prettier-ignore
        await db.batchInsert('potus_polls', rows, 50)
        const left = async (): Promise<[bodies: number, others: number]> => {
          const all = (await db('potus_polls').select('body')) as { body: unknown }[]
          const bodies = all.filter(({ body }) => body !== null).length
          return [bodies, all.length - bodies]
        }
        await prunePolls(db, { before: NOW - 8 * DAY, bodiesBefore: null }, SIGNAL)
        expect(await left()).to.deep.equal([60 * 12, 9])
        await prunePolls(db, { before: NOW - 8 * DAY, bodiesBefore: NOW - 30 * DAY }, SIGNAL)
        expect(await left()).to.deep.equal([31 * 12, 9])
      } finally {
        await database.drop()
      }
    })
  })
