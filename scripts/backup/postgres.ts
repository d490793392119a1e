/** Dumps and restores the PostgreSQL schema of a gateway, with the programs of PostgreSQL. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { serverError } from '../../gateway/stores/postgres-error.ts'
import { makePrivateFile } from '../../gateway/stores/private-files.ts'
import { BackupError, type NewestEvent } from './manifest.ts'

/** Contents of a schema. */
export interface PostgresContent {
  readonly schema: string
  readonly tables: Readonly<Record<string, number>>
  readonly newestEvent: NewestEvent | null
}

/** Dumps the schema to a file. Dump and counts are of one snapshot, so a gateway may go on writing. */
export function dumpPostgres(url: string, file: string): Promise<PostgresContent> {
  return withClient(url, async (client) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const snapshot = await client.query<{ id: string }>('SELECT pg_export_snapshot() AS id')
    const content = await contentOf(client)
    const id = snapshot.rows[0]?.id ?? ''
    makePrivateFile(file)
    await runProgram('pg_dump', url, [
      '--format=custom',
      '--no-owner',
      '--no-privileges',
      `--schema=${quoted(content.schema)}`,
      `--snapshot=${id}`,
      `--file=${file}`,
    ])
    await client.query('COMMIT')
    return content
  })
}

/** Reads what the schema of this address holds. */
export function readPostgres(url: string): Promise<PostgresContent> {
  return withClient(url, contentOf)
}

/** Restores a dump into its schema, which must be empty: all of it or nothing. */
export async function restorePostgres(url: string, file: string): Promise<void> {
  const list = await runProgram('pg_restore', null, ['--list', file])
  // The schema exists already.
  const entries = list.split('\n').filter((line) => !/^\d+; \d+ \d+ (?:SCHEMA|COMMENT - SCHEMA) /.test(line))
  // Not beside the dump: a disk with backups may be mounted for reading only.
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-restore-'))
  const chosen = join(folder, 'list')
  try {
    await writeFile(chosen, entries.join('\n'))
    await runProgram('pg_restore', url, [
      '--no-owner',
      '--no-privileges',
      '--single-transaction',
      '--exit-on-error',
      `--use-list=${chosen}`,
      file,
    ])
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function withClient<Result>(url: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: url })
  await client.connect().catch((error: unknown) => {
    throw serverError(error)
  })
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function contentOf(client: Client): Promise<PostgresContent> {
  const { rows } = await client.query<{ schema: string; name: string | null }>(
    `SELECT current_schema() AS schema, tablename AS name FROM (SELECT 1) AS one
     LEFT JOIN pg_tables ON schemaname = current_schema() ORDER BY tablename`,
  )
  const schema = rows[0]?.schema
  if (!schema) throw new BackupError('DATABASE_URL names a schema that does not exist. Create it first.')
  const tables: Record<string, number> = {}
  for (const { name } of rows) {
    if (name === null) continue
    const counted = await client.query<{ n: string }>(`SELECT count(*) AS n FROM ${quoted(schema)}.${quoted(name)}`)
    tables[name] = Number(counted.rows[0]?.n)
  }
  if (tables['payment_events'] === undefined) return { schema, tables, newestEvent: null }
  const newest = await client.query<{ id: string | null; at: string | null }>(
    'SELECT max(id) AS id, max(at) AS at FROM payment_events',
  )
  const { id = null, at = null } = newest.rows[0] ?? {}
  return { schema, tables, newestEvent: id === null ? null : { id: Number(id), at: Number(at) } }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * Runs a program of PostgreSQL and returns what it printed. The password goes through the environment, because everybody on
 * the machine can read arguments.
 */
async function runProgram(
  program: 'pg_dump' | 'pg_restore',
  url: string | null,
  args: readonly string[],
): Promise<string> {
  const address = url === null ? null : new URL(url)
  const password = decodeURIComponent(address?.password ?? '') || (address?.searchParams.get('password') ?? '')
  if (address) {
    address.password = ''
    // Not by searchParams, which writes spaces of other parameters as PostgreSQL does not read them.
    address.search = address.search.replace(/(?<=[?&])password=[^&]*&?/g, '')
  }
  const child = spawn(program, [...args, ...(address ? [`--dbname=${address.href}`] : [])], {
    env: { ...process.env, ...(password === '' ? {} : { PGPASSWORD: password }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [printed, complaint] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => reject(error.code === 'ENOENT' ? missing(program) : error))
    child.once('close', resolve)
  })
  if (code !== 0) throw new BackupError(`${program} failed: ${complaint.trim()}${adviceOn(complaint)}`)
  return printed
}

function missing(program: string): BackupError {
  return new BackupError(
    `${program} is not installed. It comes with PostgreSQL's client programs (Debian: apt-get install postgresql-client). ` +
      'Its version must not be older than that of the server.',
  )
}

function adviceOn(complaint: string): string {
  const server = /server version: (\d+)/.exec(complaint)?.[1]
  if (server === undefined || !complaint.includes('mismatch')) return ''
  return ` Install the client programs of the server's version (Debian: apt-get install postgresql-client-${server}).`
}
