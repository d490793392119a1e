import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { databaseContract } from '../../contracts/database.ts'
import { DATABASES } from '../../contracts/databases.ts'

for (const [name, create] of Object.entries(DATABASES)) databaseContract(name, create)

describe('the SQLite file of the plugins', () => {
  it('is opened for many readers beside one writer, patient with other processes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'database-'))
    const db = openDatabase({ file: join(folder, 'products.sqlite') })
    try {
      expect(await db.raw('PRAGMA journal_mode')).to.deep.equal([{ journal_mode: 'wal' }])
      expect(await db.raw('PRAGMA synchronous')).to.deep.equal([{ synchronous: 1 }])
      expect(await db.raw('PRAGMA busy_timeout')).to.deep.equal([{ timeout: 5000 }])
    } finally {
      await db.destroy()
      rmSync(folder, { recursive: true })
    }
  })
})
