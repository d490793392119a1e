/** Copies and looks into the SQLite files of a gateway, also while it runs. */
import { existsSync } from 'node:fs'
import sqlite3 from 'sqlite3'
import { makePrivateFile } from '../../gateway/stores/private-files.ts'
import { BackupError, type NewestEvent } from './manifest.ts'

type Row = Readonly<Record<string, unknown>>

interface Connection {
  all(sql: string): Promise<readonly Row[]>
  close(): Promise<void>
  readonly database: sqlite3.Database
}

const BUSY_MS = 30_000

async function openFile(file: string, mode: 'read' | 'write', busyMs = BUSY_MS): Promise<Connection> {
  const flags = mode === 'read' ? sqlite3.OPEN_READONLY : sqlite3.OPEN_READWRITE
  const database = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened: sqlite3.Database = new sqlite3.Database(file, flags, (error) =>
      error ? reject(error) : resolve(opened),
    )
  })
  database.configure('busyTimeout', busyMs)
  return {
    database,
    all: (sql) =>
      new Promise((resolve, reject) =>
        database.all<Row>(sql, (error, rows) => (error ? reject(error) : resolve(rows))),
      ),
    close: () => new Promise((resolve, reject) => database.close((error) => (error ? reject(error) : resolve()))),
  }
}

async function withFile<Result>(
  file: string,
  mode: 'read' | 'write',
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const connection = await openFile(file, mode)
  try {
    return await work(connection)
  } finally {
    await connection.close()
  }
}

/** Contents of a database file. */
export interface SqliteContent {
  /** `PRAGMA user_version`. */
  readonly version: number
  readonly tables: Readonly<Record<string, number>>
  readonly newestEvent: NewestEvent | null
}

/**
 * Copies a database in one read transaction: what was committed before it is in the copy, and nothing else. A gateway goes
 * on writing meanwhile. Checks the copy and returns what is in it.
 *
 * @throws BackupError if the source or the copy is damaged
 */
export async function copySqlite(source: string, target: string): Promise<SqliteContent> {
  makePrivateFile(target)
  await withFile(source, 'read', ({ database }) => copyPages(database, target)).catch((error: unknown) => {
    if (isDamage(error)) throw damaged(source, (error as Error).message)
    throw error
  })
  return withFile(target, 'write', async (copy) => {
    // A file that needs no log beside it.
    await copy.all('PRAGMA journal_mode = DELETE')
    return soundContent(copy, source)
  })
}

/** Reads what a copy holds. @throws BackupError if it is damaged */
export function readSqlite(file: string): Promise<SqliteContent> {
  return withFile(file, 'read', (connection) => soundContent(connection, file))
}

/** The online backup of SQLite, which the types of the driver leave out. */
interface WithBackup {
  backup(target: string): {
    /** Copies so many pages; -1 copies all that are left. */
    step(pages: number, callback: (error: Error | null) => void): void
    finish(callback: (error: Error | null) => void): void
  }
}

/** All pages at once: a copy in steps would begin anew with each payment that another process takes. */
function copyPages(database: sqlite3.Database, target: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const backup = (database as unknown as WithBackup).backup(target)
    backup.step(-1, (failed) => {
      backup.finish((unfinished) => {
        const error = failed ?? unfinished
        if (error) reject(error)
        else resolve()
      })
    })
  })
}

async function soundContent(connection: Connection, name: string): Promise<SqliteContent> {
  try {
    const [check] = await connection.all('PRAGMA integrity_check(1)')
    const verdict = String(check?.['integrity_check'])
    if (verdict !== 'ok') throw damaged(name, verdict)
    return await contentOf(connection)
  } catch (error) {
    if (isDamage(error)) throw damaged(name, (error as Error).message)
    throw error
  }
}

async function contentOf({ all }: Connection): Promise<SqliteContent> {
  const [version] = await all('PRAGMA user_version')
  const names = (
    await all("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
  ).map(({ name }) => String(name))
  const tables: Record<string, number> = {}
  for (const name of names)
    tables[name] = Number((await all(`SELECT count(*) AS n FROM "${name.replaceAll('"', '""')}"`))[0]?.['n'])
  return {
    version: Number(version?.['user_version']),
    tables,
    newestEvent: names.includes('payment_events') ? await newestOf(all) : null,
  }
}

async function newestOf(all: Connection['all']): Promise<NewestEvent | null> {
  const [row] = await all(
    'SELECT id, (SELECT max(at) FROM payment_events) AS at FROM payment_events ORDER BY id DESC LIMIT 1',
  )
  return row ? { id: Number(row['id']), at: Number(row['at']) } : null
}

/** Reads the newest event of a journal. @throws Error if the file is damaged or cannot be read */
export function newestEvent(file: string): Promise<NewestEvent | null> {
  return withFile(file, 'read', async ({ all }) => {
    const [check] = await all('PRAGMA quick_check(1)')
    if (check?.['quick_check'] !== 'ok') throw new BackupError('it is damaged')
    const [table] = await all("SELECT 1 FROM sqlite_schema WHERE name = 'payment_events'")
    return table ? newestOf(all) : null
  })
}

/** Whether any process has the file open. A file that is no database counts as not open. */
export async function isInUse(file: string): Promise<boolean> {
  if (!existsSync(file)) return false
  const connection = await openFile(file, 'write', 0)
  try {
    // In WAL mode every connection holds a shared lock for as long as it is open, and this one asks for all of them.
    await connection.all('PRAGMA locking_mode = EXCLUSIVE')
    await connection.all('SELECT count(*) FROM sqlite_schema')
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'SQLITE_BUSY'
  } finally {
    await connection.close()
  }
}

function isDamage(error: unknown): boolean {
  return ['SQLITE_CORRUPT', 'SQLITE_NOTADB'].includes((error as NodeJS.ErrnoException).code ?? '')
}

function damaged(file: string, why: string): BackupError {
  return new BackupError(
    `${file} is damaged (${why.replace(/\s+/g, ' ').trim()}), so no good copy of it can be made. Keep your last good backup: restore ` +
      'it with npm run restore (docs/operations.md, A damaged file).',
  )
}
