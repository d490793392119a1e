/**
 * `npm run lab -- polls > news.jsonl`: prints every stored poll of the news sources, one per line. The file is a recording that
 * the service can replay from REPLAY_DIR.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { readConfig } from '../../gateway/config/config.ts'
import { openDatabase } from '../../gateway/stores/database.ts'
import { existingDatabase } from '../../scripts/command-line.ts'
import { defer, readOptions } from './experiment.ts'
import { logLines } from '../../plugins/potus/replay/poll-log.ts'

readOptions({})
const db = openDatabase(existingDatabase(readConfig(), 'products.sqlite'))
defer(() => db.destroy())
if (await db.schema.hasTable('potus_polls'))
  await pipeline(
    Readable.from(logLines(db)).map((line) => `${String(line)}\n`),
    process.stdout,
  ).catch((error: NodeJS.ErrnoException) => {
    // The reader may leave early (`| head`).
    if (error.code !== 'EPIPE') throw error
  })
