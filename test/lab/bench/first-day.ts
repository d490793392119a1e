/**
 * `npm run lab -- first-day`: loads what the sources of the POTUS feed hold on a first day, from scripted
 * sources of the same size, and prints time and memory. Then it walks the archive as a buyer would.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { createFetcher } from '../../../plugins/potus/ingest/fetch.ts'
import { historyJobs } from '../../../plugins/potus/ingest/history-loads.ts'
import { createHostPace } from '../../../plugins/potus/ingest/pace-per-host.ts'
import { pollJobs } from '../../../plugins/potus/ingest/polling.ts'
import type { SourceSettings } from '../../../plugins/potus/sources/source.ts'
import { openTestFeed } from '../../plugins/potus/test-feed.ts'
import { defer, newFolder, number, readOptions } from '../experiment.ts'
import { cpuMicros } from './cpu-time.ts'

const sizes = readOptions({
  posts: number('N', 'posts of the archive', 36_000),
  releases: number('N', 'pages of the White House', 3_000),
  documents: number('N', 'documents of the Federal Register', 1_500),
}).values
const now = Date.UTC(2026, 4, 1, 12)
const file = join(newFolder(), 'products.sqlite')
const server = fork(join(import.meta.dirname, 'first-day-sources.ts'), [JSON.stringify({ now, ...sizes })])
defer(() => server.kill())
const [settings] = (await once(server, 'message')) as [Readonly<Record<string, SourceSettings>>]
const feed = await openTestFeed({ time: now, settings, db: openDatabase({ file }) })
const sources = [...feed.sources.values()].map((source) => ({
  ...source,
  history: source.history === null ? null : { ...source.history, pauseSeconds: 0 },
}))
const fetcher = createFetcher()
const log = pino({ level: 'silent' })
const parts = {
  db: feed.db,
  writer: feed,
  fetcher,
  pace: createHostPace({ now: () => feed.time, pauseMs: 0 }),
  sources,
  log,
  now: () => feed.time,
}
const jobs = [...pollJobs(parts), ...historyJobs(parts)]
const { signal } = new AbortController()
const run = (name: RegExp) =>
  Promise.all(
    jobs.filter((job) => name.test(job.name)).map((job) => job.run({ signal, ask: (async () => ({})) as never })),
  )

const megabytes = (bytes: number): number => Math.round(bytes / 1e6)
const before = process.memoryUsage.rss()
let peak = before
let longest = 0
let last = performance.now()
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss())
  longest = Math.max(longest, performance.now() - last - 20)
  last = performance.now()
}, 20)
const cpuBefore = cpuMicros()
const begun = performance.now()
await Promise.all([run(/^poll/), run(/^history/)])
while ((await feed.db('potus_histories').where({ state: 'loading' })).length > 0) await run(/^history/)
const seconds = (performance.now() - begun) / 1000
const cpu = cpuMicros() - cpuBefore
clearInterval(watch)

const loaded = performance.now()
let [items, backfilled, pages] = [0, 0, 0]
for (let cursor: string | null | undefined; cursor !== null; pages += 1) {
  const page: { items: { origin: string }[]; next_cursor: string | null } = await feed.ask('getPotusArchive', {
    query: { limit: 500, ...(cursor ? { cursor } : {}) },
    unchecked: true,
  })
  items += page.items.length
  backfilled += page.items.filter(({ origin }) => origin === 'backfill').length
  cursor = page.next_cursor
}
const walked = (performance.now() - loaded) / 1000
const bytes = statSync(file).size
console.table({
  'events stored': ((await feed.db('potus_events').count('* as n').first()) as { n: number }).n,
  'items of the archive': items,
  'of them back-filled': backfilled,
  'seconds of the load': Math.round(seconds),
  'seconds of processor time': Math.round(cpu / 1e6),
  'megabytes before': megabytes(before),
  'megabytes at most': megabytes(peak),
  'longest pause of the event loop, ms': Math.round(longest),
  'megabytes on disk': megabytes(bytes),
  'pages of 500 to walk it': pages,
  'seconds to walk it': Number(walked.toFixed(1)),
})
await fetcher.close()
await feed.close()
