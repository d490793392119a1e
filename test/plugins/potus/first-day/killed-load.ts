/** A process that loads the older items of sources until it is killed: `node killed-load.ts <database file> <settings> <time>`. */
import { pino } from 'pino'
import { openDatabase } from '../../../../gateway/stores/database.ts'
import { createFetcher } from '../../../../plugins/potus/ingest/fetch.ts'
import { historyJobs } from '../../../../plugins/potus/ingest/history-loads.ts'
import { createHostPace } from '../../../../plugins/potus/ingest/pace-per-host.ts'
import { pollJobs } from '../../../../plugins/potus/ingest/polling.ts'
import { openTestFeed } from '../test-feed.ts'

const [file = '', settings = '{}', time = '0'] = process.argv.slice(2)
const feed = await openTestFeed({
  time: Number(time),
  settings: JSON.parse(settings) as Record<string, { enabled: boolean }>,
  db: openDatabase({ file }),
})
const sources = [...feed.sources.values()].map((source) => ({
  ...source,
  history: source.history === null ? null : { ...source.history, pauseSeconds: 0 },
}))
const log = pino({ level: 'silent' })
const parts = {
  db: feed.db,
  writer: feed,
  fetcher: createFetcher(),
  pace: createHostPace({ now: () => feed.time, pauseMs: 0 }),
  sources,
  log,
  now: () => feed.time,
}
const { signal } = new AbortController()
const run = (name: RegExp) =>
  Promise.all(
    [...pollJobs(parts), ...historyJobs(parts)]
      .filter((job) => name.test(job.name))
      .map((job) => job.run({ signal, ask: (async () => ({})) as never })),
  )
const isDone = async (): Promise<boolean> => {
  const rows = (await feed.db('potus_histories').pluck('state')) as string[]
  return rows.length === 3 && rows.every((state) => state === 'done')
}
// The list of posts is read by its poll, the other sources by jobs of their own.
await Promise.all([run(/^poll truth.archive/), run(/^history/)])
while (!(await isDone())) await run(/^history/)
process.stdout.write('done\n')
process.exit(0)
