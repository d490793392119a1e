/**
 * `npm run lab -- symbols`: collects the symbols of the shipped catalog from scripted venues in a process of their own.
 * Measures the first back-fill, what a day costs of processor time and storage, and memory. Figures of a day are those of
 * the measured minutes, times 1,440.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../../gateway/stores/database.ts'
import market from '../../../plugins/market/index.ts'
import { paceOf } from '../../../plugins/market/venue-pace.ts'
import type { Settings } from '../../../plugins/market/symbols.ts'
import type { VenueName } from '../../../plugins/market/venues/bar-venues.ts'
import regime from '../../../plugins/regime/index.ts'
import { openPluginHost } from '../../plugins/plugin-host.ts'
import { defer, flag, newFolder, number, readOptions, root } from '../experiment.ts'
import { cpuMicros } from './cpu-time.ts'
import type { Served } from './symbols-venues.ts'

const { days, minutes, paced } = readOptions({
  days: number('N', 'days of the back-fill', 30, 1),
  minutes: number('N', 'minutes that are measured after it', 720, 1),
  paced: flag('ask the venues at the pace of the catalog, and let them keep to their real limits'),
}).values
const START = Date.UTC(2026, 5, 1, 0, 0, 30)
const DAY = 86_400_000
/** The history of the catalog: from history_start to the end of November 2026, in days. */
const WHOLE_DAYS = 480

const server = fork(join(import.meta.dirname, 'symbols-venues.ts'), [String(START), String(paced ? 1 : Infinity)])
defer(() => server.kill())
async function tell(clock?: number): Promise<Served> {
  const answer = once(server, 'message')
  server.send({ clock })
  return ((await answer) as [Served])[0]
}

const catalog = (name: string): Record<string, unknown> =>
  (
    JSON.parse(readFileSync(join(root, 'catalog', name), 'utf8')) as {
      settings: Record<string, unknown>
    }
  ).settings
let clock = START
const first = await tell(clock)
const shipped = catalog('market.json') as unknown as Settings
const symbols = shipped.symbols.filter(({ venues }) => venues !== undefined)
const start = new Date(START - days * DAY).toISOString()
const settings = {
  ...shipped,
  symbols,
  history_start: start,
  venues: Object.fromEntries(
    (Object.keys(shipped.venues!) as VenueName[]).map((name) => [
      name,
      {
        ...shipped.venues![name],
        url: first.urls[name],
        book_url: undefined,
        ...(paced ? {} : { per_second: 1e6 }),
      },
    ]),
  ),
}
const db = openDatabase({ file: join(newFolder(), 'products.sqlite') })
const host = await openPluginHost(
  [
    { plugin: market, settings },
    {
      plugin: regime,
      settings: { ...catalog('regime.json'), since: new Date(START - (days - 2) * DAY).toISOString() },
    },
  ],
  { dataMode: 'online', now: () => new Date(clock), db },
)
const classify = host.registrations[1]!.jobs!.map(({ name }) => name)
const cpuSeconds = (): number => cpuMicros() / 1e6
/** Bytes of the tables that begin with a word, indexes included. */
async function bytesOf(word: string): Promise<number> {
  const [row] = (await db.raw(
    `select coalesce(sum(s.pgsize), 0) as n from dbstat s join sqlite_master m on m.name = s.name where m.tbl_name like ?`,
    [`${word}%`],
  )) as { n: number }[]
  return row!.n
}
const stored = async () => ({
  bars: await bytesOf('market_bars'),
  regime: await bytesOf('regime_s'),
  all: await bytesOf(''),
})
const megabytes = (bytes: number): number => Math.round(bytes / 1e5) / 10
let peak = 0
const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 50)

// The first back-fill.
let [began, spent] = [performance.now(), cpuSeconds()]
await host.run('poll')
const completed = new Map<string, number>()
while (completed.size < symbols.length) {
  await host.run('backfill')
  for (const { symbol } of symbols) {
    const { ready } = await host.call('getMarketStatus', { symbol })
    if (ready && !completed.has(symbol)) completed.set(symbol, (performance.now() - began) / 1000)
  }
  if (completed.size < symbols.length) await tell((clock += 10_000))
}
const fetched = { seconds: (performance.now() - began) / 1000, cpu: cpuSeconds() - spent, ...(await tell()) }
;[began, spent] = [performance.now(), cpuSeconds()]
await host.run('poll')
for (const name of classify) await host.run(name)
const classified = { seconds: (performance.now() - began) / 1000, cpu: cpuSeconds() - spent }
const before = { ...(await stored()), ...(await tell()) }

// Minutes as they close.
const costs = { poll: 0, books: 0, classify: 0 }
let slowest = 0
for (let minute = 0; minute < minutes; minute += 1) {
  await tell((clock += 60_000 - (minute === 0 ? 20_000 : 0)))
  const timed = async (job: keyof typeof costs, names: readonly string[]): Promise<void> => {
    const from = cpuSeconds()
    const at = performance.now()
    for (const name of names) await host.run(name)
    costs[job] += cpuSeconds() - from
    if (job === 'poll') slowest = Math.max(slowest, performance.now() - at)
  }
  await timed('poll', ['poll'])
  await timed('classify', classify)
  await timed('books', ['depth'])
}
const after = { ...(await stored()), ...(await tell()) }
clearInterval(watch)
const day = (n: number): number => (n / minutes) * 1440
/** Seconds of the requests of a whole first back-fill at the pace of the slower of the two venues. */
const paceSeconds = Math.max(
  ...(['coinbase', 'bitstamp'] as const).map(
    (name) => (fetched.asked[name] * (WHOLE_DAYS / days)) / paceOf(name, shipped).perSecond,
  ),
)
const { symbols: kept } = await host.call('getRegimeCoverage')
console.table({
  symbols: symbols.length,
  'days of the back-fill': days,
  'back-fill, seconds': Math.round(fetched.seconds),
  'first symbol complete after, seconds': Math.round(Math.min(...completed.values())),
  'back-fill, processor seconds': Math.round(fetched.cpu),
  'requests that a venue refused for its limit': after.limited,
  [`${WHOLE_DAYS} days at the pace of the catalog, minutes`]: Math.round(paceSeconds / 60),
  [`of them the first symbol, minutes`]: Math.round(paceSeconds / 60 / symbols.length),
  'classifying, seconds': Math.round(classified.seconds),
  'classifying, processor seconds': Math.round(classified.cpu),
  'snapshots stored': kept.reduce((sum, { snapshots }) => sum + snapshots, 0),
  'minutes measured': minutes,
  'processor seconds a day: minutes': Math.round(day(costs.poll)),
  'processor seconds a day: books': Math.round(day(costs.books)),
  'processor seconds a day: regime': Math.round(day(costs.classify)),
  'slowest poll of all symbols, ms': Math.round(slowest),
  'megabytes a day: bars': megabytes(day(after.bars - before.bars)),
  'megabytes a day: regime': megabytes(day(after.regime - before.regime)),
  'megabytes a day: everything': megabytes(day(after.all - before.all)),
  'megabytes a year and symbol': Math.round((megabytes(day(after.all - before.all)) * 365) / symbols.length),
  'megabytes of memory at most': Math.round(peak / 1e6),
})
console.table(
  Object.fromEntries(
    (Object.keys(first.urls) as VenueName[]).map((name) => [
      name,
      {
        'requests of the back-fill': fetched.asked[name],
        'requests a minute': Math.round(((after.asked[name] - before.asked[name]) / minutes) * 10) / 10,
      },
    ]),
  ),
)
await host.stop()
await db.destroy()
