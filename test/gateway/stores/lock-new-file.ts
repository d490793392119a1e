import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import sqlite3 from 'sqlite3'

/** How long another connection is given to meet the lock. */
const LOCKED_MS = 200

/**
 * Creates a SQLite file in which a write has begun, as when another process creates the file at the same moment. The
 * function that it returns ends the write a moment later.
 */
export async function lockNewFile(file: string): Promise<() => Promise<void>> {
  mkdirSync(dirname(file), { recursive: true })
  const other = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened: sqlite3.Database = new sqlite3.Database(file, (error) => (error ? reject(error) : resolve(opened)))
  })
  const run = (sql: string): Promise<void> =>
    new Promise((resolve, reject) => {
      other.exec(sql, (error) => (error ? reject(error) : resolve()))
    })
  await run('BEGIN IMMEDIATE; CREATE TABLE other_process (id INTEGER)')
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, LOCKED_MS))
    await run('COMMIT')
    await new Promise<void>((resolve, reject) => other.close((error) => (error ? reject(error) : resolve())))
  }
}
