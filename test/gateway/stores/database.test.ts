import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { databaseContract } from '../../contracts/database.ts'
import { DATABASES } from '../../contracts/databases.ts'
import { lockNewFile } from './lock-new-file.ts'

for (const [name, create] of Object.entries(DATABASES)) databaseContract(name, create)

describe('a database that is being closed', () => {
  it('refuses the next query of whoever still works with it, instead of keeping the process open', async () => {
    const db = openDatabase({ file: ':memory:' })
    await db.raw('SELECT 0')
    const queries = db.raw('SELECT 1').then(() => db.raw('SELECT 2'))
    const refused = queries.then(
      () => null,
      (error: Error) => error.message,
    )
    await db.destroy()
    const closed = new Promise((resolve) => setTimeout(() => resolve('it still waits'), 5_000).unref())
    expect(await Promise.race([refused, closed])).to.equal('the database is closed')
  })
})

describe('the SQLite database', () => {
  it('allows many readers beside one writer, and waits for the writes of other processes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'database-'))
    const db = openDatabase({ file: join(folder, 'products.sqlite') })
    try {
      expect(await db.raw('PRAGMA journal_mode')).to.deep.equal([{ journal_mode: 'wal' }])
      expect(await db.raw('PRAGMA synchronous')).to.deep.equal([{ synchronous: 1 }])
      expect(await db.raw('PRAGMA busy_timeout')).to.deep.equal([{ timeout: 30_000 }])
    } finally {
      await db.destroy()
      rmSync(folder, { recursive: true })
    }
  })

  it('opens a new file while another process is writing to it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'database-'))
    const file = join(folder, 'products.sqlite')
    const unlock = await lockNewFile(file)
    const db = openDatabase({ file })
    const created = db.schema.createTable('counts', (table) => void table.integer('n').notNullable())
    try {
      await unlock()
      await created
      expect(await db.raw('PRAGMA journal_mode')).to.deep.equal([{ journal_mode: 'wal' }])
    } finally {
      await db.destroy()
      rmSync(folder, { recursive: true })
    }
  })

  it('serialises transactions of several connections that read first and write later', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'database-'))
    const opened = [1, 2, 3].map(() => openDatabase({ file: join(folder, 'products.sqlite') }))
    try {
      await opened[0]!.schema.createTable('counts', (table) => void table.integer('n').notNullable())
      await opened[0]!('counts').insert({ n: 0 })
      const count = (db: (typeof opened)[0]): Promise<void> =>
        db.transaction(async (tx) => {
          const { n } = (await tx('counts').first()) as { n: number }
          await tx('counts').update({ n: n + 1 })
        })
      await Promise.all(opened.flatMap((db) => Array.from({ length: 20 }, () => count(db))))
      expect(await opened[1]!('counts')).to.deep.equal([{ n: 60 }])
    } finally {
      for (const db of opened) await db.destroy()
      rmSync(folder, { recursive: true })
    }
  })
})
