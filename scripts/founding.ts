/** `npm run founding -- export`: the founding list as CSV or JSON (`--json`), with the link each e-mail must contain. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Papa from 'papaparse'
import { type Config, ConfigError, readConfig } from '../gateway/config/config.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { type Member, openMembers, rowOf } from '../plugins/founding/members.ts'

const USAGE = 'npm run founding -- export [--json]\n'

async function members(config: Config): Promise<Member[]> {
  const file = join(config.dataDir, 'products.sqlite')
  if (config.databaseUrl === null && !existsSync(file)) throw new ConfigError([`DATA_DIR has no ${file} yet.`])
  const db = openDatabase(config.databaseUrl === null ? { file } : { url: config.databaseUrl })
  try {
    return (await db.schema.hasTable('founding_members')) ? await openMembers(db).all() : []
  } finally {
    await db.destroy()
  }
}

async function run(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { json: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  if (positionals.join(' ') !== 'export') {
    process.stderr.write(USAGE)
    return 1
  }
  const config = readConfig()
  const rows = (await members(config)).map((member) => rowOf(member, config.baseUrl))
  // Cells that a spreadsheet would run as a formula are written as text.
  const columns = ['email', 'source', 'joined', 'unsubscribe_url']
  const text = values.json ? JSON.stringify(rows, null, 2) : Papa.unparse(rows, { columns, escapeFormulae: true })
  process.stdout.write(`${text}\n`)
  return 0
}

try {
  process.exitCode = await run()
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : ((error as Error).stack ?? String(error))}\n`)
  process.exitCode = 1
}
