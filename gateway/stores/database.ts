/**
 * The database of plugins and lists: SQLite by default, PostgreSQL by URL, one query layer over both. Money is not kept
 * here: the ledger has its own file and its own statements (payments/journal).
 */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import knex, { type Knex } from 'knex'
import type { Client } from 'pg'
import type { Database } from 'sqlite3'

export type DatabaseOptions = { readonly file: string } | { readonly url: string }

/** Waits this long for another process's write instead of failing: a first start writes months of data at a time. */
const BUSY_MS = 30_000
const PRAGMAS = `
  PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
  PRAGMA cache_size = -32768; PRAGMA mmap_size = 268435456;`

/**
 * Opens the database; nothing is connected before the first query. `file` may be ":memory:". Close with `destroy()`.
 * Plugins may count on the same answers from both: integers are numbers, also 64-bit ones and counts. SQLite has one
 * connection: inside a transaction, ask the transaction and not the database, or both wait for each other.
 */
export function openDatabase(options: DatabaseOptions): Knex {
  return 'file' in options ? openSqlite(options.file) : openPostgres(options.url)
}

function openSqlite(file: string): Knex {
  if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true })
  return knex({
    client: 'sqlite3',
    connection: { filename: file },
    useNullAsDefault: true,
    pool: {
      // One connection: one writer, and ":memory:" stays one database for as long as it is open.
      min: 1,
      max: 1,
      afterCreate(connection: Database, done: (error: Error | null) => void) {
        connection.configure('busyTimeout', BUSY_MS)
        takeTurns(connection)
        connection.exec(PRAGMAS, done)
      },
    },
  })
}

/**
 * Lets a transaction wait for its turn to write at its beginning. One that reads first and writes later is refused at
 * once (SQLITE_BUSY, whatever the time-out) where another process has written in between.
 */
function takeTurns(connection: Database): void {
  const all = connection.all.bind(connection) as (sql: string, ...rest: readonly unknown[]) => Database
  Object.assign(connection, {
    all: (sql: string, ...rest: readonly unknown[]) => all(sql === 'BEGIN;' ? 'BEGIN IMMEDIATE;' : sql, ...rest),
  })
}

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
