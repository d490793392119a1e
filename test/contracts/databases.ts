/** An empty test database of each supported kind. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase, type OpenDatabase } from '../../gateway/stores/database.ts'
import { openSchema } from './postgres.ts'

export interface TestDatabase {
  readonly db: OpenDatabase
  /** Opens a second connection, as another process would; null for a database in memory. */
  readonly open: (() => OpenDatabase) | null
  drop(): Promise<void>
}

/** Each creates an empty database, or returns null if its server does not answer. */
export const DATABASES: Readonly<Record<string, () => Promise<TestDatabase | null>>> = {
  memory: async () => {
    const db = openDatabase({ file: ':memory:' })
    return { db, open: null, drop: () => db.destroy() }
  },

  'a SQLite file': async () => {
    const folder = mkdtempSync(join(tmpdir(), 'database-'))
    return databaseOf(
      () => openDatabase({ file: join(folder, 'deeper', 'products.sqlite') }),
      async () => rmSync(folder, { recursive: true }),
    )
  },

  PostgreSQL: async () => {
    const schema = await openSchema()
    return schema && databaseOf(() => openDatabase({ url: schema.url }), schema.drop)
  },
}

function databaseOf(connect: () => OpenDatabase, remove: () => Promise<void>): TestDatabase {
  const opened: OpenDatabase[] = []
  const open = (): OpenDatabase => {
    const db = connect()
    opened.push(db)
    return db
  }
  return {
    db: open(),
    open,
    async drop() {
      for (const db of opened) await db.destroy()
      await remove()
    },
  }
}
