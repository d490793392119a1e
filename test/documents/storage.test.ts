import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { bytesPerRow, inSqlite, SUBJECTS } from '../lab/bench/storage/stored-rows.ts'

const operations = readFileSync(resolve(import.meta.dirname, '../../docs/operations.md'), 'utf8')
/** How far a shorter run on another version of SQLite may be from the table. */
const TOLERANCE = 0.2

describe('docs/operations.md, what tables take', function () {
  this.timeout(60_000)

  for (const subject of SUBJECTS)
    it(`says what ${subject.name} take on SQLite, and how many there are`, async () => {
      const row = operations.split('\n').find((line) => line.startsWith(`| ${subject.name} `))
      const [, , bytes, , rows, megabytes] = (row ?? '').split('|').map((cell) => cell.trim())
      const measured = await bytesPerRow({ ...subject, rows: Math.ceil(subject.rows / 2) }, await inSqlite())
      expect(Number(bytes) / measured).to.be.closeTo(1, TOLERANCE)
      expect(rows).to.equal(`${subject.held.toLocaleString('en')} a ${subject.per}`)
      expect((Number(bytes) * subject.held) / 1e6 / Number(megabytes)).to.be.closeTo(1, 0.06)
    })
})
