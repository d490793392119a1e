/**
 * The database of plugins, prices, leases and counts: SQLite by default, PostgreSQL by URL, with one query layer over
 * both. Payments are not kept here; the journal has its own file and its own statements (payments/journal).
 */
import knex, { type Knex } from 'knex'
import type { Client } from 'pg'
import type { Database as Connection, RunResult, Statement } from 'sqlite3'
import type { Database } from '../plugin/database.ts'
import { watchConnections } from './connection-use.ts'
import { makePrivateFile } from './private-files.ts'

/** The database as the gateway uses it: all of Knex. It is also a Database, which is what plugins see. */
export type OpenDatabase = Knex & Database

export type DatabaseOptions = { readonly file: string } | { readonly url: string }

/** How long to wait for another process's write before failing. A first start writes months of data at once. */
const BUSY_MS = 30_000
const PRAGMAS = `
  PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
  PRAGMA cache_size = -32768; PRAGMA mmap_size = 268435456;`

/**
 * Opens the database; it connects with the first query. `file` may be ":memory:". Close it with `destroy()`. Both
 * databases return integers as numbers, also 64-bit ones and counts. SQLite has one connection: inside a transaction
 * query the transaction, because a query to the database would wait for the transaction to end.
 */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  const db = 'file' in options ? openSqlite(options.file) : openPostgres(options.url)
  watchConnections(db)
  // Knex does what Database declares, but it has too many overloads for the compiler to match the two types.
  return db as OpenDatabase
}

function openSqlite(file: string): Knex {
  if (file !== ':memory:') makePrivateFile(file)
  return knex({
    client: 'sqlite3',
    connection: { filename: file },
    useNullAsDefault: true,
    pool: {
      // With one connection there is one writer, and ":memory:" stays one database while it is open.
      min: 1,
      max: 1,
      afterCreate(connection: Connection, done: (error: Error | null) => void) {
        connection.configure('busyTimeout', BUSY_MS)
        lockOnBegin(connection)
        keepStatements(connection)
        connection.exec(PRAGMAS, done)
      },
    },
  })
}

/**
 * Makes every transaction take the write lock when it begins. A transaction that reads first and writes later fails at
 * once with SQLITE_BUSY, whatever the timeout, if another process has written in between.
 */
function lockOnBegin(connection: Connection): void {
  const all = connection.all.bind(connection) as (sql: string, ...rest: readonly unknown[]) => Connection
  Object.assign(connection, {
    all: (sql: string, ...rest: readonly unknown[]) => all(sql === 'BEGIN;' ? 'BEGIN IMMEDIATE;' : sql, ...rest),
  })
}

/** How many statements stay prepared. Those with longer texts mostly insert many rows, and seldom come again. */
const MAX_STATEMENTS = 100
const MAX_STATEMENT_LENGTH = 4_000
const REPEATABLE = /^\s*(?:select|insert|update|delete|with)\b/i

type Callback = (this: unknown, error: Error | null, rows?: unknown) => void

/**
 * Keeps the statements that come again prepared: to prepare a small one takes longer than to run it. A statement that
 * fails is prepared again, and SQLite does so by itself after a change of the schema.
 */
function keepStatements(connection: Connection): void {
  /** By text, the one used last at the end. Texts that came only once yet have no statement. */
  const kept = new Map<string, Statement | 'came once' | 'being prepared'>()
  const finalize = (sql: string): void => {
    const known = kept.get(sql)
    if (typeof known === 'object') known.finalize()
    kept.delete(sql)
  }
  function keep(sql: string, known: Statement | 'came once' | 'being prepared'): void {
    kept.delete(sql)
    kept.set(sql, known)
    const [oldest] = kept.keys()
    if (kept.size > MAX_STATEMENTS && oldest !== undefined) finalize(oldest)
  }
  /** Prepares a statement, which others may use once that has succeeded. */
  function prepare(sql: string, failed: (error: Error) => void): Statement {
    keep(sql, 'being prepared')
    const statement: Statement = connection.prepare(sql, (error: Error | null) => {
      if (error === null) return keep(sql, statement)
      kept.delete(sql)
      failed(error)
    })
    return statement
  }
  const repeated = (method: 'all' | 'run') => {
    const once = connection[method].bind(connection) as (...words: readonly unknown[]) => Connection
    return (sql: string, values: unknown, callback: Callback): Connection => {
      const known = kept.get(sql)
      if (known === undefined && sql.length <= MAX_STATEMENT_LENGTH && REPEATABLE.test(sql)) keep(sql, 'came once')
      if (known === undefined || known === 'being prepared') return once(sql, values, callback)
      const statement = known === 'came once' ? prepare(sql, callback) : known
      if (statement === known) keep(sql, statement)
      statement[method](values, function (this: RunResult, error: Error | null, rows?: unknown) {
        if (error !== null && kept.get(sql) === statement) finalize(sql)
        // The next run of the statement changes what it says of itself.
        callback.call({ lastID: this.lastID, changes: this.changes }, error, rows)
      })
      return connection
    }
  }
  const close = connection.close.bind(connection)
  Object.assign(connection, {
    all: repeated('all'),
    run: repeated('run'),
    // A connection with prepared statements cannot be closed.
    close(callback?: (error: Error | null) => void) {
      for (const sql of kept.keys()) finalize(sql)
      close(callback)
    },
  })
}

/** Type id of bigint in PostgreSQL. */
const INT8 = 20

function openPostgres(url: string): Knex {
  return knex({
    client: 'pg',
    connection: url,
    pool: {
      min: 0,
      max: 10,
      afterCreate(connection: Client, done: () => void) {
        connection.setTypeParser(INT8, Number)
        done()
      },
    },
  })
}
