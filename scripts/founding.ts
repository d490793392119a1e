/**
 * `npm run founding -- export`: prints the founding list as CSV, or as JSON with `--json`. Each row has the unsubscribe
 * link that an e-mail to that member must contain.
 */
import Papa from 'papaparse'
import { type Config, readConfig } from '../gateway/config/config.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { type Member, openMembers, rowOf } from '../plugins/founding/members.ts'
import { existingDatabase, reportError } from './command-line.ts'
import { readFlags } from './flags.ts'

const USAGE = `npm run founding -- export [--json]

Prints the founding list as CSV, or as JSON, with the unsubscribe link of each member.`

async function members(config: Config): Promise<Member[]> {
  const db = openDatabase(existingDatabase(config, 'products.sqlite'))
  try {
    return (await db.schema.hasTable('founding_members')) ? await openMembers(db).all() : []
  } finally {
    await db.destroy()
  }
}

async function run(): Promise<number> {
  const { values, positionals } = readFlags(USAGE, {
    options: { json: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  if (positionals.join(' ') !== 'export') {
    process.stderr.write(`${USAGE}\n`)
    return 1
  }
  const config = readConfig()
  const rows = (await members(config)).map((member) => rowOf(member, config.baseUrl))
  // escapeFormulae keeps spreadsheets from running a cell as a formula.
  const columns = ['email', 'source', 'joined', 'unsubscribe_url']
  const text = values.json ? JSON.stringify(rows, null, 2) : Papa.unparse(rows, { columns, escapeFormulae: true })
  process.stdout.write(`${text}\n`)
  return 0
}

try {
  process.exitCode = await run()
} catch (error) {
  reportError(error)
}
