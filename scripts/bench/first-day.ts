/**
 * `npm run bench:first-day`: loads what the sources of the POTUS feed hold on a first day, from scripted
 * sources of the same size, and prints time and memory. Then it walks the archive as a buyer would.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { openDatabase } from '../../gateway/stores/database.ts'
import { createFetcher } from '../../plugins/potus/ingest/fetch.ts'
import { historyJobs } from '../../plugins/potus/ingest/history-loads.ts'
import { createHostPace } from '../../plugins/potus/ingest/pace-per-host.ts'
import { pollJobs } from '../../plugins/potus/ingest/polling.ts'
import type { SourceSettings } from '../../plugins/potus/sources/source.ts'
import { readFlags, readNumber } from '../command-line.ts'
import { cpuMicros } from './cpu-time.ts'
import { openScriptedSources } from '../../test/plugins/potus/first-day/scripted-sources.ts'
import { openTestFeed } from '../../test/plugins/potus/test-feed.ts'

const USAGE = `Usage: npm run bench:first-day [-- OPTIONS]

  --posts N      posts of the archive (default 36000)
  --releases N   pages of the White House (default 3000)
  --documents N  documents of the Federal Register (default 1500)`
// --serve is for the process of the sources.
const { values } = readFlags(USAGE, {
  options: {
    posts: { type: 'string', default: '36000' },
    releases: { type: 'string', default: '3000' },
    documents: { type: 'string', default: '1500' },
    serve: { type: 'boolean', default: false },
  },
})
const sizes = {
  posts: readNumber('--posts', values.posts),
  releases: readNumber('--releases', values.releases),
  documents: readNumber('--documents', values.documents),
}
const now = Date.UTC(2026, 4, 1, 12)
if (values.serve) {
  // The sources run in a process of their own, so that their work is not counted.
  const { settings } = await openScriptedSources({ now, ...sizes })
  process.send?.(settings)
  await new Promise(() => {})
}
const folder = mkdtempSync(join(tmpdir(), 'tollgate-first-day-'))
const file = join(folder, 'products.sqlite')
const server = fork(import.meta.filename, ['--serve', ...process.argv.slice(2)])
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
server.kill()
rmSync(folder, { recursive: true, force: true })
process.exit(0)
