/**
 * `npm run polls > news.jsonl`: prints every stored poll of the news sources, one line each. The file is a recording that
 * can be replayed from REPLAY_DIR.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ConfigError, readConfig } from '../gateway/config/config.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { reportError } from './command-line.ts'
import { logLines } from '../plugins/potus/replay/poll-log.ts'

async function run(): Promise<void> {
  const { dataDir, databaseUrl } = readConfig()
  const file = join(dataDir, 'products.sqlite')
  if (databaseUrl === null && !existsSync(file)) throw new ConfigError([`DATA_DIR has no ${file} yet.`])
  const db = openDatabase(databaseUrl === null ? { file } : { url: databaseUrl })
  try {
    if (!(await db.schema.hasTable('potus_polls'))) return
    await pipeline(
      Readable.from(logLines(db)).map((line) => `${String(line)}\n`),
      process.stdout,
    )
  } finally {
    await db.destroy()
  }
}

try {
  await run()
} catch (error) {
  // The reader may leave early (`| head`).
  if ((error as NodeJS.ErrnoException).code === 'EPIPE') process.exit()
  reportError(error, ConfigError)
}
