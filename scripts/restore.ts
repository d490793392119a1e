/** `npm run restore`: puts a backup where the gateway finds it. It never overwrites anything. */
import {
  chownSync,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Config, readStorageConfig } from '../gateway/config/config.ts'
import { makePrivateFolder } from '../gateway/stores/private-files.ts'
import { RESTORE_MARK } from '../gateway/stores/sqlite-files.ts'
import {
  type Backup,
  BackupError,
  differences,
  DUMP,
  JOURNAL,
  type Manifest,
  PRODUCTS,
  readBackup,
  sha256Of,
  syncToDisk,
  TOKEN_KEYS,
} from './backup/manifest.ts'
import { readPostgres, restorePostgres } from './backup/postgres.ts'
import { isInUse, newestEvent, readSqlite } from './backup/sqlite.ts'
import { reportError } from './command-line.ts'
import { readFlags } from './flags.ts'
import { withCommands } from '../gateway/config/project-root.ts'

const USAGE = withCommands(`npm run restore -- BACKUP [--replace]

Restores a folder that npm run backup wrote. Stop the gateway first. The command uses the settings of the gateway: DATA_DIR,
NETWORK and DATA_MODE, or DATABASE_URL with an empty schema.
--replace also replaces data that are newer than the backup, or damaged. They are moved aside, never deleted.`)

async function run(path: string, isForced: boolean): Promise<string> {
  const config = readStorageConfig()
  const backup = await readBackup(path)
  assertSameGateway(backup.manifest, config)
  const done =
    config.databaseUrl === null
      ? await restoreFiles(backup, config, isForced)
      : await restoreDatabase(backup, config.databaseUrl)
  return `${[...done, ...(await restoreKeys(backup, config)), ...otherAddress(backup.manifest, config), ...whatToDo(backup.manifest)].join('\n')}\n`
}

/** A journal of one network says nothing about payments on another, and made-up data must never be sold as real. */
function assertSameGateway({ network, data_mode, database }: Manifest, config: Config): void {
  const here = config.databaseUrl === null ? 'sqlite' : 'postgresql'
  const problems = [
    network === config.network ? null : `its NETWORK is ${network}, here it is ${config.network}`,
    data_mode === config.dataMode ? null : `its DATA_MODE is ${data_mode}, here it is ${config.dataMode}`,
    database === here
      ? null
      : `it is of ${NAMES[database]}, and here DATABASE_URL is ${config.databaseUrl === null ? 'not set' : 'set'}`,
  ].filter((problem) => problem !== null)
  if (problems.length > 0)
    throw new BackupError(
      `This backup is of another gateway: ${problems.join('; ')}. Nothing was changed. Use the settings it was made with.`,
    )
}

const NAMES = { sqlite: 'SQLite', postgresql: 'PostgreSQL' } as const

async function restoreFiles(
  { folder, manifest }: Backup,
  { dataDir }: Config,
  isForced: boolean,
): Promise<readonly string[]> {
  for (const { name, tables, version } of manifest.databases) {
    const content = await readSqlite(join(folder, name))
    const problem = differences(tables, content.tables)
    if (problem !== '' || content.version !== version)
      throw new BackupError(
        `${join(folder, name)} does not hold what its manifest says. ${problem}. Nothing was changed.`,
      )
  }
  makeFolder(dataDir)
  await assertNotRunning(dataDir)
  const isInterrupted = existsSync(join(dataDir, RESTORE_MARK))
  if (!isForced && !isInterrupted) await assertNotNewer(join(dataDir, JOURNAL), manifest)

  for (const { name } of manifest.databases) await copyDurably(join(folder, name), join(dataDir, `${name}.restoring`))
  // From here to the end, a gateway refuses to start: it would take a missing journal for a new one.
  writeDurably(join(dataDir, RESTORE_MARK), `${folder}\n`)
  const old = moveAside(dataDir)
  for (const { name } of manifest.databases) renameSync(join(dataDir, `${name}.restoring`), join(dataDir, name))
  syncToDisk(dataDir)
  rmSync(join(dataDir, RESTORE_MARK))
  syncToDisk(dataDir)
  return [
    `Restored ${manifest.databases.map(({ name }) => name).join(' and ')} of ${manifest.made_at} to ${dataDir}`,
    ...manifest.databases.map(
      ({ name, tables }) =>
        `  ${name}: SHA-256 and the rows of ${Object.keys(tables).length} tables are as in the manifest`,
    ),
    ...(old === null ? [] : [`The former files are in ${old}. Delete them when nobody needs them any more.`]),
  ]
}

async function assertNotRunning(dataDir: string): Promise<void> {
  const stop = 'Stop the gateway first. Nothing was changed.'
  for (const name of [JOURNAL, PRODUCTS])
    if (await isInUse(join(dataDir, name)))
      throw new BackupError(`${join(dataDir, name)} is in use by another process. ${stop}`)
  const pid = userOf(dataDir)
  if (pid !== null) throw new BackupError(`Process ${pid} has files of ${dataDir} open. ${stop}`)
}

/** The process that has a database of a folder open, as far as Linux says so; it finds those of damaged files too. */
function userOf(dataDir: string): string | null {
  if (!existsSync('/proc/self/fd')) return null
  const files = [JOURNAL, PRODUCTS].map((name) => join(dataDir, name))
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid))
    try {
      for (const fd of readdirSync(`/proc/${pid}/fd`))
        if (files.some((file) => readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(file))) return pid
    } catch {
      // The process has ended, or belongs to another user.
    }
  return null
}

/** Refuses to go back behind payments that only the present journal knows. */
async function assertNotNewer(file: string, { newest_event: ours, made_at }: Manifest): Promise<void> {
  if (!existsSync(file)) return
  const again =
    'Nothing was changed. To restore all the same, add --replace: what is there now is moved aside and kept.'
  const present = await newestEvent(file).catch((error: unknown) => {
    throw new BackupError(
      `${file} cannot be read (${(error as Error).message}), so it may be newer than the backup. ${again}`,
    )
  })
  if (present === null || (ours !== null && present.id <= ours.id && present.at <= ours.at)) return
  throw new BackupError(
    `${file} is newer than the backup: its last event is of ${new Date(present.at).toISOString()}, the backup of ${made_at}. ` +
      `It knows payments that the backup does not have. ${again}`,
  )
}

/** Moves the present databases into a folder of their own, and returns it; null if there are none. */
function moveAside(dataDir: string): string | null {
  const names = [JOURNAL, PRODUCTS]
    .flatMap((name) => [name, `${name}-wal`, `${name}-shm`])
    .filter((name) => existsSync(join(dataDir, name)))
  if (names.length === 0) return null
  const folder = join(dataDir, `before-restore-${new Date().toISOString().replace(/[-:]|\.\d+/g, '')}`)
  makePrivateFolder(folder)
  for (const name of names) renameSync(join(dataDir, name), join(folder, name))
  syncToDisk(folder)
  return folder
}

async function restoreDatabase({ folder, manifest }: Backup, url: string): Promise<readonly string[]> {
  const before = await readPostgres(url)
  if (Object.keys(before.tables).length > 0)
    throw new BackupError(
      `The schema ${before.schema} of DATABASE_URL has ${Object.keys(before.tables).length} tables. Nothing was changed. Restore into a new, ` +
        'empty database (createdb), and start the gateway with its address. The present one stays as it is.',
    )
  if (before.schema !== manifest.schema)
    throw new BackupError(
      `The backup is of the schema ${manifest.schema}, and DATABASE_URL leads to ${before.schema}. Nothing was changed. Create the schema ${manifest.schema}, and name it in search_path.`,
    )
  await restorePostgres(url, join(folder, DUMP))
  const after = await readPostgres(url)
  const problem = differences(manifest.databases[0]?.tables ?? {}, after.tables)
  if (problem !== '')
    throw new BackupError(
      `What was restored is not what the manifest says: ${problem}. Do not start a gateway with it.`,
    )
  return [
    `Restored the schema ${after.schema} of ${manifest.made_at}`,
    `  the rows of ${Object.keys(after.tables).length} tables are as in the manifest`,
  ]
}

/** Puts the keys of a backup back if there are none. Keys that are there stay. */
async function restoreKeys({ folder, manifest }: Backup, { dataDir, tokenKeys }: Config): Promise<readonly string[]> {
  const file = join(dataDir, TOKEN_KEYS)
  const backedUp = manifest.secrets.find(({ name }) => name === TOKEN_KEYS)
  if (tokenKeys !== null) return ['TOKEN_KEYS is set, so its keys are used.']
  if (existsSync(file)) {
    const isSame = !backedUp || (await sha256Of(file)) === backedUp.sha256
    return [
      `${file} was there and stays.${isSame ? '' : ' It is not the one of the backup: tokens of the other keys are refused.'}`,
    ]
  }
  if (!backedUp)
    return [
      `${file} does not exist and is not in this backup. Put your copy there, or set TOKEN_KEYS, before you start the gateway: with new`,
      'keys, it refuses every access token that was sold until now.',
    ]
  makeFolder(dataDir)
  // Not copied: a copy has the mode of the file in the backup, which others may be able to read.
  writeDurably(file, readFileSync(join(folder, TOKEN_KEYS), 'utf8'))
  return [`Restored ${file}: private keys, which only you can read.`]
}

/** Access tokens name the gateway that issued them. */
function otherAddress({ base_url }: Manifest, { baseUrl }: Config): readonly string[] {
  if (base_url === baseUrl) return []
  return [`BASE_URL was ${base_url} and is ${baseUrl} here: access tokens of the other address are refused.`]
}

/** Steps for the operator after a restore: a backup cannot know what happened since. */
function whatToDo({ made_at }: Manifest): readonly string[] {
  return [
    '',
    `Payments after ${made_at} are not in the journal, but on the chain. Nobody is charged twice: the token accepts each of them once.`,
    'Next:',
    '  1. Start the gateway. It finishes payments that were under way in the backup.',
    withCommands('  2. npm run ledger -- reconcile') + '   lists the payments that the journal does not have.',
    withCommands('  3. npm run tokens -- revoke …') + `    again for tokens that you revoked after ${made_at}.`,
    'docs/operations.md, After a restore, says what to do about each.',
  ]
}

/**
 * Copies a database. The mode is not copied, which a backup may have lost on the way: others could read the copy, or the
 * gateway could not write it.
 */
async function copyDurably(from: string, to: string): Promise<void> {
  // An interrupted restore may have left it.
  rmSync(to, { force: true })
  await pipeline(createReadStream(from), createWriteStream(to, { flags: 'wx', mode: 0o600 }))
  giveToOwner(to)
  syncToDisk(to)
}

/** Makes a folder, and the one that holds those of all networks. */
function makeFolder(folder: string): void {
  for (const each of [dirname(folder), folder])
    if (mkdirSync(each, { recursive: true, mode: 0o700 }) !== undefined) giveToOwner(each)
}

/** Gives a file to the owner of its folder, which root restores for another user. */
function giveToOwner(file: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(file))
  chownSync(file, uid, gid)
}

function writeDurably(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 })
  giveToOwner(file)
  syncToDisk(file)
}

const { values, positionals } = readFlags(USAGE, {
  allowPositionals: true,
  options: { replace: { type: 'boolean', default: false } },
})
const [path, ...others] = positionals
if (path === undefined || others.length > 0) {
  process.stderr.write(`${USAGE}\n`)
  process.exit(2)
}
try {
  process.stdout.write(await run(path, values.replace))
} catch (error) {
  reportError(error, BackupError)
}
