/**
 * `npm run polls > news.jsonl`: prints every stored poll of the news sources, one per line. The file is a recording that
 * the service can replay from REPLAY_DIR.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { readConfig } from '../gateway/config/config.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { existingDatabase, readFlags, reportError } from './command-line.ts'
import { logLines } from '../plugins/potus/replay/poll-log.ts'

const USAGE = `npm run polls > news.jsonl

Prints every stored poll of the news sources, one per line: a recording that the gateway can replay from REPLAY_DIR.`

async function run(): Promise<void> {
  readFlags(USAGE, {})
  const db = openDatabase(existingDatabase(readConfig(), 'products.sqlite'))
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
  reportError(error)
}
