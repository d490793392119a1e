/**
 * A backup is a folder: one file per database, and manifest.json, which says what is in it, how it was made and how to
 * tell that nothing has changed since. The manifest is written last.
 */
import { createHash } from 'node:crypto'
import { closeSync, createReadStream, fsyncSync, openSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { compileOwn, violationsOf } from '../../gateway/validation/json-schema.ts'
import operatorSchema from '../../schemas/operator.json' with { type: 'json' }

/** An error that an operator can act on: shown without a stack. */
export class BackupError extends Error {}

/** A file of a backup. */
export interface BackupFile {
  readonly name: string
  readonly bytes: number
  readonly sha256: string
}

/** The newest event of a journal: what tells which of two copies is newer. */
export interface NewestEvent {
  readonly id: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** A database of a backup. */
export interface BackedUpDatabase extends BackupFile {
  /** `PRAGMA user_version` of a SQLite file; null for PostgreSQL. */
  readonly version: number | null
  /** The number of rows of each table. */
  readonly tables: Readonly<Record<string, number>>
}

/** Its shape is `BackupManifest` in schemas/operator.json. */
export interface Manifest {
  readonly format: typeof FORMAT
  /** ISO time at which the backup began. Payments that were settled later are not in it. */
  readonly made_at: string
  /** Version of Tollgate. */
  readonly version: string
  /** BASE_URL: access tokens name it. */
  readonly base_url: string
  readonly network: string
  readonly data_mode: string
  readonly database: 'sqlite' | 'postgresql'
  /** The schema of PostgreSQL; null for SQLite. */
  readonly schema: string | null
  readonly databases: readonly BackedUpDatabase[]
  /** Files with private keys, which are only included on request. */
  readonly secrets: readonly BackupFile[]
  readonly not_included: readonly NotIncluded[]
  /** Null if there is no journal yet, or it is empty. */
  readonly newest_event: NewestEvent | null
}

/** Data that a gateway uses and a backup lacks. */
export interface NotIncluded {
  readonly name: string
  readonly why: string
}

export const MANIFEST = 'manifest.json'
export const JOURNAL = 'journal.sqlite'
export const PRODUCTS = 'products.sqlite'
export const TOKEN_KEYS = 'token-keys.json'
export const FORMAT = 1

/** Describes a file that was written to a backup, once it is on disk. */
export async function describeFile(folder: string, name: string): Promise<BackupFile> {
  const file = join(folder, name)
  syncToDisk(file)
  return { name, bytes: statSync(file).size, sha256: await sha256Of(file) }
}

/** Waits until a file, or the names in a folder, are on the disk. */
export function syncToDisk(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** The SHA-256 of a file, in hex. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** A backup that was read. */
export interface Backup {
  readonly folder: string
  readonly manifest: Manifest
}

/**
 * Reads a backup, given its folder or its manifest, and compares every file with the manifest.
 *
 * @throws BackupError if it is no backup, was made by a later release, or is not as it was when it was made
 */
export async function readBackup(path: string): Promise<Backup> {
  const given = resolve(path)
  const folder = basename(given) === MANIFEST ? dirname(given) : given
  const manifest = readManifest(folder)
  for (const { name, bytes, sha256 } of [...manifest.databases, ...manifest.secrets]) {
    const file = join(folder, name)
    const size = statSync(file, { throwIfNoEntry: false })?.size
    if (size === undefined) throw new BackupError(`${file} is missing. ${USE_ANOTHER}`)
    if (size !== bytes || (await sha256Of(file)) !== sha256)
      throw new BackupError(`${file} is not as it was when the backup was made (SHA-256 differs). ${USE_ANOTHER}`)
  }
  return { folder, manifest }
}

const USE_ANOTHER = 'Nothing was changed. Copy the backup again, or use another one.'

function readManifest(folder: string): Manifest {
  const file = join(folder, MANIFEST)
  let manifest: unknown
  try {
    manifest = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const problem = isMissing ? `${folder} has no ${MANIFEST}` : `${file} cannot be read (${(error as Error).message})`
    throw new BackupError(`${problem}, so it is no backup, or one that was not finished. ${USE_ANOTHER}`)
  }
  const { format } = manifest as Partial<Manifest>
  if (typeof format === 'number' && format > FORMAT)
    throw new BackupError(`${file} was written by a later release (format ${format}). Update Tollgate first.`)
  if (isManifest(manifest)) return manifest as Manifest
  const [wrong] = violationsOf(isManifest)
  const where = wrong ? ` (${wrong.path.join('.')}: ${wrong.message})` : ''
  throw new BackupError(`${file} is not a manifest of npm run backup${where}. ${USE_ANOTHER}`)
}

const isManifest = compileOwn({ ...operatorSchema, $id: 'backup-manifest.json', $ref: '#/$defs/BackupManifest' })

/** The name of the dump of a PostgreSQL database. */
export const DUMP = 'postgresql.dump'

/** The differences between the row counts of a manifest and those of a database, as text; empty if there are none. */
export function differences(
  expected: Readonly<Record<string, number>>,
  found: Readonly<Record<string, number>>,
): string {
  return Object.keys({ ...expected, ...found })
    .filter((table) => expected[table] !== found[table])
    .map(
      (table) =>
        `${table}: ${expected[table] ?? 'no such table'} in the manifest, ${found[table] ?? 'no such table'} here`,
    )
    .join('; ')
}
