/** A connection to a SQLite file: the sqlite3 driver with promises, one write at a time, in WAL mode. */
import { setTimeout } from 'node:timers/promises'
import sqlite3 from 'sqlite3'
import type { Row } from './shared-sql.ts'

type Value = string | number | Buffer | null

export type Statement = (...values: readonly Value[]) => Promise<readonly Row[]>

/**
 * The sqlite3 driver with promises. Statements are always stepped to their end: one left open (as a reused
 * `Statement.get` is) blocks checkpoints and shows later reads an old snapshot.
 */
export interface Connection {
  exec(sql: string): Promise<void>
  /** Prepares a statement once, for repeated use. */
  prepare(sql: string): Promise<Statement>
  /** Prepares and runs a statement once. */
  run: (sql: string, ...values: readonly Value[]) => Promise<readonly Row[]>
  close(): Promise<void>
}

/** A write waits this long for the write of another process. */
const BUSY_MS = 5_000

/** Opens a connection to a file, which one that writes puts into WAL mode; ':memory:' for tests. */
export async function connect(file: string, mode: 'read' | 'write'): Promise<Connection> {
  const flags = mode === 'read' ? sqlite3.OPEN_READONLY : sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE
  const database = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened: sqlite3.Database = new sqlite3.Database(file, flags, (error) =>
      error ? reject(error) : resolve(opened),
    )
  })
  database.configure('busyTimeout', BUSY_MS)
  if (mode === 'write') await useWriteAheadLog(database)
  const statements: sqlite3.Statement[] = []
  // While another process holds the lock, every statement that writes waits in a thread of the pool, which has few, and
  // which all reads of the gateway need. So a connection has one of them at most.
  const take = mode === 'write' ? createTurns() : null
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => (take ? take(work) : work())
  return {
    exec: (sql) => inTurn(() => done((callback) => database.exec(sql, callback))),
    async prepare(sql) {
      const statement = await new Promise<sqlite3.Statement>((resolve, reject) => {
        const prepared: sqlite3.Statement = database.prepare(sql, (error) =>
          error ? reject(error) : resolve(prepared),
        )
      })
      statements.push(statement)
      return (...values) =>
        inTurn(async () => {
          try {
            return await rows((callback) => statement.all(values, callback))
          } catch (error) {
            // A statement that was refused for a lock counts as a running writer until it is reset: nothing that
            // follows on its connection would be committed, and then its reset would take it all back.
            await new Promise<void>((resolve) => void statement.reset(() => resolve()))
            throw error
          }
        })
    },
    run: (sql, ...values) => inTurn(() => rows((callback) => database.all(sql, values, callback))),
    async close() {
      await Promise.all(statements.map((statement) => done((callback) => statement.finalize(callback))))
      await done((callback) => database.close(callback))
    },
  }
}

type Turns = <Result>(work: () => Promise<Result>) => Promise<Result>

/** Runs one piece of work after the other, whatever becomes of each. */
function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

const RETRY_MS = 10

/**
 * Puts a file into WAL mode. While another connection writes to a file that is not in this mode yet, SQLite refuses the
 * switch at once, whatever the busy timeout, so processes that open a new file together would fail.
 */
async function useWriteAheadLog(database: sqlite3.Database): Promise<void> {
  const end = Date.now() + BUSY_MS
  for (;;) {
    try {
      return await done((callback) => database.exec('PRAGMA journal_mode = WAL', callback))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'SQLITE_BUSY' || Date.now() >= end) throw error
      await setTimeout(RETRY_MS)
    }
  }
}

type Callback<Value> = (error: Error | null, value: Value) => void

function rows(run: (callback: Callback<readonly Row[]>) => void): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => run((error, value) => (error ? reject(error) : resolve(value))))
}

function done(run: (callback: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => run((error) => (error ? reject(error) : resolve())))
}
