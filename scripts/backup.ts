/** `npm run backup`: copies the databases of a gateway, also while it runs and takes payments. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type Config, readStorageConfig } from '../gateway/config/config.ts'
import { PROJECT_ROOT, withCommands } from '../gateway/config/project-root.ts'
import { makePrivateFolder } from '../gateway/stores/private-files.ts'
import {
  BackupError,
  type BackedUpDatabase,
  describeFile,
  DUMP,
  FORMAT,
  JOURNAL,
  MANIFEST,
  type Manifest,
  type NewestEvent,
  type NotIncluded,
  PRODUCTS,
  syncToDisk,
  TOKEN_KEYS,
} from './backup/manifest.ts'
import { dumpPostgres } from './backup/postgres.ts'
import { copySqlite } from './backup/sqlite.ts'
import { existingDatabase, reportError } from './command-line.ts'
import { readFlags } from './flags.ts'

const USAGE = withCommands(`npm run backup [-- --to FOLDER] [--with-keys]

Copies the databases of the gateway into a new folder in FOLDER (backups by default); the gateway may run and take payments.
The command uses the settings of the gateway: DATA_DIR, NETWORK and DATA_MODE, or DATABASE_URL.
--with-keys includes token-keys.json: private keys, which can sign access tokens.
Restore with: npm run restore -- FOLDER/NAME`)

/** The manifest of a backup. */
interface CopiedDatabases {
  readonly databases: readonly BackedUpDatabase[]
  readonly schema: string | null
  readonly newestEvent: NewestEvent | null
}

async function run(to: string, withKeys: boolean): Promise<string> {
  const config = readStorageConfig()
  const madeAt = new Date()
  const stamp = madeAt.toISOString().replace(/[-:]|\.\d+/g, '')
  const folder = join(resolve(to), `tollgate-${basename(config.dataDir)}-${stamp}`)
  if (existsSync(folder)) throw new BackupError(`${folder} exists already. Try again in a second.`)
  // A backup that was interrupted keeps this name, so that nobody takes it for a whole one.
  const partial = `${folder}.unfinished`
  makePrivateFolder(dirname(folder))
  mkdirSync(partial, { mode: 0o700 })
  try {
    const copied =
      config.databaseUrl === null ? await copyFiles(config, partial) : await dump(config.databaseUrl, partial)
    const secrets = withKeys ? await copyKeys(config, partial) : []
    const manifest: Manifest = {
      format: FORMAT,
      made_at: madeAt.toISOString(),
      version: versionOfTollgate(),
      base_url: config.baseUrl,
      network: config.network,
      data_mode: config.dataMode,
      database: config.databaseUrl === null ? 'sqlite' : 'postgresql',
      schema: copied.schema,
      databases: copied.databases,
      secrets,
      not_included: leftOut(config, withKeys),
      newest_event: copied.newestEvent,
    }
    await writeFile(join(partial, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 })
    await describeFile(partial, MANIFEST)
    await rename(partial, folder)
    syncToDisk(dirname(folder))
    return report(folder, manifest)
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    throw error
  }
}

/**
 * The products come first. Then the journal is never the older one of the two: reconciliation goes on where the products
 * say, and would not look again for payments before that which the journal does not have.
 */
async function copyFiles(config: Config, folder: string): Promise<CopiedDatabases> {
  existingDatabase(config, JOURNAL)
  const names = [PRODUCTS, JOURNAL].filter((name) => existsSync(join(config.dataDir, name)))
  const databases: BackedUpDatabase[] = []
  let newest: NewestEvent | null = null
  for (const name of names) {
    const { version, tables, newestEvent } = await copySqlite(join(config.dataDir, name), join(folder, name))
    databases.push({ ...(await describeFile(folder, name)), version, tables })
    newest = newestEvent ?? newest
  }
  return { databases, schema: null, newestEvent: newest }
}

async function dump(url: string, folder: string): Promise<CopiedDatabases> {
  const { schema, tables, newestEvent } = await dumpPostgres(url, join(folder, DUMP))
  if (tables['payments'] === undefined)
    throw new BackupError(
      `The schema ${schema} of DATABASE_URL has no journal. Start the gateway first, or correct DATABASE_URL.`,
    )
  return { databases: [{ ...(await describeFile(folder, DUMP)), version: null, tables }], schema, newestEvent }
}

async function copyKeys({ dataDir, tokenKeys }: Config, folder: string): Promise<Manifest['secrets']> {
  const file = join(dataDir, TOKEN_KEYS)
  if (!existsSync(file))
    throw new BackupError(
      `${file} does not exist, so there is no key to include: ${tokenKeys === null ? 'the gateway makes it at its first start' : 'TOKEN_KEYS is used instead'}.`,
    )
  // Not copied: a copy has the mode of the file.
  writeFileSync(join(folder, TOKEN_KEYS), readFileSync(file), { mode: 0o600 })
  return [await describeFile(folder, TOKEN_KEYS)]
}

const REASONS: Readonly<Record<string, string>> = {
  [TOKEN_KEYS]:
    'private keys, which sign access tokens and receipts. Keep a copy of it, or make the backup with --with-keys: without it, plans that were sold stop working',
  'sandbox.json': 'describes the local chain, with its keys',
  chain: 'the local chain and its keys: test money only. A gateway without it starts a new chain',
  bodies: 'bodies of requests while they are read',
}
const DATABASE_FILES = [JOURNAL, PRODUCTS].flatMap((name) => [name, `${name}-wal`, `${name}-shm`])

/** Names everything in DATA_DIR that the backup leaves out, and what is not in DATA_DIR at all. */
function leftOut({ dataDir, databaseUrl, keyvUrl }: Config, withKeys: boolean): readonly NotIncluded[] {
  const included = databaseUrl === null ? [...DATABASE_FILES] : []
  if (withKeys) included.push(TOKEN_KEYS)
  const names = existsSync(dataDir) ? readdirSync(dataDir).filter((name) => !included.includes(name)) : []
  return [
    ...names.toSorted().map((name) => ({ name, why: REASONS[name] ?? 'no file that the gateway needs' })),
    { name: 'environment', why: 'the settings, with SETTLE_KEY, TOKEN_KEYS and OPERATOR_TOKEN if they are set' },
    { name: 'catalog', why: 'prices, routes and plugins: keep them in version control' },
    ...(keyvUrl === null ? [] : [{ name: 'KEYV_URL', why: 'caches and limits, which may vanish' }]),
  ]
}

function versionOfTollgate(): string {
  return (JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string }).version
}

function report(folder: string, { databases, secrets, not_included }: Manifest): string {
  const files = databases.map(({ name, tables }) => {
    const rows = Object.values(tables).reduce((sum, each) => sum + each, 0)
    return `  ${name}: ${rows} rows in ${Object.keys(tables).length} tables, ${statSync(join(folder, name)).size} bytes`
  })
  return `${[
    `Wrote ${folder}`,
    ...files,
    ...secrets.map(({ name }) => `  ${name}: PRIVATE KEYS. Keep this backup as safe as the keys themselves.`),
    'Not included:',
    ...not_included.map(({ name, why }) => `  ${name}: ${why}`),
    withCommands(`Restore with: npm run restore -- ${folder}`),
  ].join('\n')}\n`
}

/** System errors of a full or read-only disk, or of a path that does not exist. */
const UNWRITABLE = /^(E(ACCES|PERM|ROFS|NOSPC|DQUOT|NOTDIR|NOENT|XIST)|SQLITE_FULL)$/

/** Says what to do about a folder that a backup cannot be written to; other errors are returned as they are. */
function explained(error: unknown): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (!UNWRITABLE.test(code)) return error
  return new BackupError(
    `No backup was made: ${message}. Name a folder with --to that can be written and has as much room as the databases take.`,
  )
}

const { values } = readFlags(USAGE, {
  options: { to: { type: 'string', default: 'backups' }, 'with-keys': { type: 'boolean', default: false } },
})
try {
  process.stdout.write(await run(values.to, values['with-keys']))
} catch (error) {
  reportError(explained(error), BackupError)
}
