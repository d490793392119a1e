/**
 * The bare sqlite3 driver with promises. Statements are prepared once and always stepped to their end: one left open
 * (as a kept `Statement.get` is) blocks checkpoints and shows later reads an old snapshot.
 */
import sqlite3 from 'sqlite3'
import type { Row } from './record.ts'

type Value = string | number | Buffer

export type Query = (...values: readonly Value[]) => Promise<readonly Row[]>

export interface Connection {
  exec(sql: string): Promise<void>
  prepare(sql: string): Promise<Query>
  /** Runs a statement that is not worth keeping. */
  once: (sql: string, ...values: readonly Value[]) => Promise<readonly Row[]>
  close(): Promise<void>
}

/** Waits this long for another process's write instead of failing. */
const BUSY_MS = 5_000

export async function connect(file: string, mode: 'read' | 'write'): Promise<Connection> {
  const flags = mode === 'read' ? sqlite3.OPEN_READONLY : sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE
  const database = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened: sqlite3.Database = new sqlite3.Database(file, flags, (error) =>
      error ? reject(error) : resolve(opened),
    )
  })
  database.configure('busyTimeout', BUSY_MS)
  const kept: sqlite3.Statement[] = []
  return {
    exec: (sql) => done((callback) => database.exec(sql, callback)),
    async prepare(sql) {
      const statement = await new Promise<sqlite3.Statement>((resolve, reject) => {
        const prepared: sqlite3.Statement = database.prepare(sql, (error) =>
          error ? reject(error) : resolve(prepared),
        )
      })
      kept.push(statement)
      return (...values) => rows((callback) => statement.all(values, callback))
    },
    once: (sql, ...values) => rows((callback) => database.all(sql, values, callback)),
    async close() {
      await Promise.all(kept.map((statement) => done((callback) => statement.finalize(callback))))
      await done((callback) => database.close(callback))
    },
  }
}

type Callback<Value> = (error: Error | null, value: Value) => void

function rows(run: (callback: Callback<readonly Row[]>) => void): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => run((error, value) => (error ? reject(error) : resolve(value))))
}

function done(run: (callback: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => run((error) => (error ? reject(error) : resolve())))
}
