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

describe('a statement that comes again in a SQLite database', () => {
  const insert = (db: ReturnType<typeof openDatabase>, n: number) => db('counts').insert({ n })
  const open = async () => {
    const db = openDatabase({ file: ':memory:' })
    await db.schema.createTable('counts', (table) => void table.integer('n').primary())
    return db
  }

  it('tells every caller of its own run, in turn, at once and among more than are kept prepared', async () => {
    const db = await open()
    for (let n = 1; n <= 5; n += 1) expect(await insert(db, n)).to.deep.equal([n])
    const rowsOf = (n: number) => db('counts').where({ n })
    expect(await db.transaction((tx) => Promise.all([1, 2, 3, 4].map((n) => tx('counts').where({ n })))))
      .to.deep.equal([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }], [{ n: 4 }]])
      .and.to.deep.equal(await Promise.all([1, 2, 3, 4].map(rowsOf)))
    for (const round of [1, 2, 3])
      for (let more = 0; more < 150; more += 1)
        expect(
          await db('counts')
            .where({ n: 5 })
            .select(db.raw(`n + ${more} AS sum`)),
          `${round}`,
        ).to.deep.equal([{ sum: 5 + more }])
    expect(await db('counts').where('n', '>', 3).delete()).to.equal(2)
    expect(await db('counts').where('n', '>', 2).delete()).to.equal(1)
    expect(await db('counts').where('n', '>', 3).delete()).to.equal(0)
    await db.destroy()
  })

  it('runs after it has failed, and sees a table that has changed or gone', async () => {
    const db = await open()
    const messageOf = (work: Promise<unknown>) =>
      work.then(
        () => null,
        (error: Error) => error.message,
      )
    for (const n of [1, 2, 3]) await insert(db, n)
    for (let tries = 0; tries < 3; tries += 1) {
      expect(await messageOf(insert(db, 1))).to.contain('UNIQUE')
      expect(await messageOf(db.raw('SELECT * FROM nobody'))).to.contain('no such table')
      expect(await insert(db, 10 + tries)).to.deep.equal([10 + tries])
    }
    const first = () => db('counts').where({ n: 1 }).select('*')
    for (let tries = 0; tries < 3; tries += 1) expect(await first()).to.deep.equal([{ n: 1 }])
    await db.schema.alterTable('counts', (table) => void table.integer('extra'))
    expect(await first()).to.deep.equal([{ n: 1, extra: null }])
    await db.schema.dropTable('counts')
    for (let tries = 0; tries < 3; tries += 1) expect(await messageOf(first())).to.contain('no such table')
    await db.destroy()
  })

  it('tells every caller that it cannot be prepared', async () => {
    const db = await open()
    const failures = await db.transaction(async (tx) => {
      const ask = () => tx('nobody').catch((error: Error) => error.message)
      return [await ask(), ...(await Promise.all([ask(), ask(), ask()])), await ask()]
    })
    for (const failure of failures) expect(failure).to.contain('no such table')
    await db.destroy()
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
