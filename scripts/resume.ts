/** `npm run resume`: sells a product or an operation again that was paused. */
import { readStorageConfig } from '../gateway/config/config.ts'
import { withCommands } from '../gateway/config/project-root.ts'
import { createLog } from '../gateway/observe/log.ts'
import { createPausedSales } from '../gateway/products/paused-sales.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { existingDatabase, reportError } from './command-line.ts'
import { readFlags } from './flags.ts'

const USAGE = withCommands(`npm run resume -- NAME

Sells a product or an operation again that was paused, in every gateway on this database. npm run pause lists what is paused.`)

const { positionals } = readFlags(USAGE, { allowPositionals: true })

async function run([name, ...more]: readonly string[]): Promise<number> {
  if (name === undefined || more.length > 0) return refuse(USAGE)
  const db = openDatabase(existingDatabase(readStorageConfig(), 'products.sqlite'))
  try {
    const paused = createPausedSales(db, createLog('silent'), () => new Date())
    if (!(await paused.resume(name)))
      return refuse(withCommands(`${name} is not paused by itself. List what is paused with: npm run pause`))
    process.stdout.write(`${name} is sold again.\n`)
    return 0
  } finally {
    await db.destroy()
  }
}

function refuse(problem: string): number {
  process.stderr.write(`${problem}\n`)
  return 1
}

try {
  process.exitCode = await run(positionals)
} catch (error) {
  reportError(error)
}
