/**
 * Checks the SQLite files of a data folder before anything is opened, so that a damaged one is named with what to do
 * about it, instead of failing somewhere later.
 */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import sqlite3 from 'sqlite3'
import { DataError } from './data-error.ts'

/** The file that a restore leaves in DATA_DIR while it moves files. */
export const RESTORE_MARK = 'restore-under-way'

/** How long the start waits for the check of a file. One of a gigabyte takes a few seconds. */
const WAIT_MS = 10_000

export interface FileCheck {
  /** Resolves with what is wrong with the rest of a file that was too large to be checked within the wait; null if nothing. */
  readonly rest: Promise<DataError | null>
}

/**
 * Checks a database file that exists. A file too large to be checked within the wait is checked to its end while the
 * gateway already serves.
 *
 * @throws DataError if a restore was interrupted, or if the file is damaged or cannot be written
 */
export async function checkSqliteFile(file: string, waitMs = WAIT_MS): Promise<FileCheck> {
  const folder = dirname(file)
  if (existsSync(join(folder, RESTORE_MARK)))
    throw new DataError(`A restore into ${folder} was interrupted. Run it again: npm run restore -- <backup>`)
  if (!existsSync(file) || statSync(file).size === 0) return { rest: Promise.resolve(null) }
  const torn = tornAt(file)
  if (torn !== null) throw damaged(file, torn)
  const check = quickCheck(file)
  let timer: NodeJS.Timeout | undefined
  const wait = new Promise<'later'>((resolve) => {
    timer = setTimeout(() => resolve('later'), waitMs)
  })
  const found = await Promise.race([check, wait]).finally(() => clearTimeout(timer))
  if (found === 'later') return { rest: check }
  if (found !== null) throw found
  return { rest: Promise.resolve(null) }
}

const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'

/**
 * Reads in the header whether a file was cut off; null if it is whole. A file may be longer or shorter than its header
 * says while its log holds the newest pages, but never ends within a page.
 * Source: https://www.sqlite.org/fileformat2.html, section 1.3.
 */
function tornAt(file: string): string | null {
  const header = Buffer.alloc(HEADER_BYTES)
  const fd = openSync(file, 'r')
  try {
    if (readSync(fd, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return 'it ends within its header'
  } finally {
    closeSync(fd)
  }
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return 'its header is not that of a SQLite database'
  const stated = header.readUInt16BE(16)
  const pageBytes = stated === 1 ? 65_536 : stated
  const { size } = statSync(file)
  return size % pageBytes === 0 ? null : `it ends within a page, after ${size} bytes`
}

/** Reads the whole structure of a database. */
async function quickCheck(file: string): Promise<DataError | null> {
  const database = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened: sqlite3.Database = new sqlite3.Database(file, sqlite3.OPEN_READWRITE, (error) =>
      error ? reject(error) : resolve(opened),
    )
  })
  try {
    const [row] = await new Promise<readonly { readonly quick_check: string }[]>((resolve, reject) => {
      database.configure('busyTimeout', 30_000)
      database.all<{ quick_check: string }>('PRAGMA quick_check(1)', (error, rows) =>
        error ? reject(error) : resolve(rows),
      )
    })
    return row === undefined || row.quick_check === 'ok' ? null : damaged(file, row.quick_check)
  } catch (error) {
    const explained = openingError(file, error)
    if (explained instanceof DataError) return explained
    throw explained
  } finally {
    await new Promise((resolve) => database.close(resolve))
  }
}

const LOST: Readonly<Record<string, string>> = {
  'journal.sqlite': 'It is the record of every payment, so the gateway does not start without it.',
  'products.sqlite':
    'It holds prices, revoked tokens and the data of products, so the gateway does not start without it.',
}

function damaged(file: string, why: string): DataError {
  const what = LOST[basename(file)] ?? 'The gateway does not start without it.'
  return new DataError(
    `${file} is damaged: ${why.replace(/\s+/g, ' ').trim()}. ${what} Nothing was changed. Do not delete it: move nothing, and ` +
      'restore your last backup with\n  npm run restore -- <backup> --replace\n' +
      'which keeps the damaged file aside. docs/operations.md, A damaged file, says what is lost and how to find it again.',
  )
}

/** Says what to do about a file that cannot be opened; other errors are returned as they are. */
export function openingError(file: string, error: unknown): unknown {
  const { code = '', message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
  if (code === 'SQLITE_CORRUPT' || code === 'SQLITE_NOTADB') return damaged(file, message)
  const advice = OPENING[code]
  if (advice === undefined) return error
  return new DataError(`${file} cannot be written (${message}). ${advice} Nothing was changed.`)
}

const OPENING: Readonly<Record<string, string>> = {
  SQLITE_FULL: 'The disk is full: free some space, then start the gateway.',
  SQLITE_IOERR: 'The disk reports an error, or is full: look at the log of the system (dmesg) and at df.',
  SQLITE_READONLY:
    'The disk or the file is read-only: mount the disk for writing, and let the user of the gateway write.',
  SQLITE_CANTOPEN: 'The disk is read-only, or the folder belongs to another user.',
}
