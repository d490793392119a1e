/**
 * `npm run lab -- snapshots`: does a call cost more when the history is
 * long? Starts the built gateway with the snapshots of the sample, about 0.4 million, and once more with as many as asked
 * for. Compares the CPU of /v1/stats and of a paid history page of 1,000 rows: the newest rows, and rows from anywhere in
 * the history. Rounds take turns; compare the ratios. Needs Linux, and a gigabyte of disk for ten million snapshots.
 */
import { cpSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { median } from '../../../plugins/lib/quant/rolling-median.ts'
import { SNAPSHOT_COLUMNS } from '../../../plugins/regime/snapshots.ts'
import { number, readOptions, sayTable } from '../experiment.ts'
import { costOf, type Expected, requestBytes } from './calls/load.ts'
import { createBuyer, headerOf, newWallets, requirementOf } from './calls/payments.ts'
import { NETWORK, type Server, Servers } from './calls/servers.ts'
import { cpuBetween, readProcessCpu } from './cpu-time.ts'

const CONNECTIONS = 8
const STATS = '/v1/stats'
const HISTORY = '/v1/regime/history'
const ROWS = 1_000
const MINUTE = 60
/** Columns that a copy has earlier. */
const TIMES: ReadonlySet<string> = new Set(['as_of', 'since', 'known_at', 'computed_at'])
/** /v1/stats computes its figures at most this often. */
const FACTS_SECONDS = 60

interface Extent {
  readonly count: number
  /** Epoch seconds. */
  readonly first: number
  readonly last: number
}

interface Case {
  readonly name: string
  readonly expected: Expected
  /** Returns the next request. */
  prepare(server: Server, extent: Extent): () => Buffer
}

/** Copies the snapshots of a stopped gateway to earlier minutes until there are so many. */
async function lengthen(file: string, count: number): Promise<Extent> {
  const db = openDatabase({ file })
  try {
    const has = (await db('regime_snapshots')
      .select('series')
      .min('as_of as first')
      .max('as_of as last')
      .count('* as count')
      .groupBy('series')
      .first()) as unknown as Extent & { readonly series: number }
    const span = has.last - has.first + MINUTE
    await db.raw('pragma synchronous = off')
    let total = has.count
    for (let copy = 1; total < count; copy += 1) {
      const shift = copy * span
      await db.raw(
        `insert into regime_snapshots (series, ${SNAPSHOT_COLUMNS.join()})
         select series, ${SNAPSHOT_COLUMNS.map((name) => (TIMES.has(name) ? `${name} - ${shift}` : name)).join()}
         from regime_snapshots where as_of >= ${has.first} and series = ${has.series} order by as_of desc limit ${count - total}`,
      )
      total = Math.min(count, total + has.count)
    }
    await db('regime_series').where('id', has.series).update({ snapshots: total })
    const first = (await db('regime_snapshots').min('as_of as first').first()) as { first: number }
    return { count: total, first: first.first, last: has.last }
  } finally {
    await db.destroy()
  }
}

/** Signs payments for the server as they are needed. */
async function buyerOf({ url }: Server): Promise<() => object> {
  return createBuyer(newWallets(200), await requirementOf(url + HISTORY))
}

const pageFrom = (start: number): string => `${HISTORY}?limit=${ROWS}&start=${new Date(start * 1000).toISOString()}`

/** The start of a page, so that all of its minutes are over. */
const startOfNewest = ({ last }: Extent): number => last - 2 * ROWS * MINUTE
const startOfAny = (extent: Extent): number =>
  extent.first + Math.floor((Math.random() * (startOfNewest(extent) - extent.first)) / MINUTE) * MINUTE

async function openCases(servers: readonly Server[]): Promise<readonly Case[]> {
  const buyers = new Map(await Promise.all(servers.map(async (server) => [server, await buyerOf(server)] as const)))
  const paid = (name: string, startOf: (extent: Extent) => number): Case => ({
    name,
    expected: { status: 200, contains: `"count":${ROWS}` },
    prepare: (server, extent) => () =>
      requestBytes(server.port, 'GET', pageFrom(startOf(extent)), {
        'payment-signature': headerOf((buyers.get(server) as () => object)()),
      }),
  })
  const stats: Case = {
    name: STATS,
    expected: { status: 200, contains: '"snapshots":' },
    prepare: ({ port }) => {
      const bytes = requestBytes(port, 'GET', STATS)
      return () => bytes
    },
  }
  return [stats, paid('history, newest rows', startOfNewest), paid('history, any rows', startOfAny)]
}

/** The microseconds of CPU of a call that computes the figures of /v1/stats anew. */
async function measureNewFacts({ pid, url }: Server): Promise<number> {
  await sleep(FACTS_SECONDS * 1000)
  const before = readProcessCpu(pid)
  await (await fetch(url + STATS)).text()
  return cpuBetween(before, readProcessCpu(pid))
}

const { snapshots, rounds, seconds } = readOptions({
  snapshots: number('N', 'length of the long history', 10_000_000, 1),
  rounds: number('N', 'rounds of each call', 5, 1),
  seconds: number('S', 'seconds of each call in a round', 3, 0.1),
}).values
const servers = new Servers()
// The first start computes the history of the sample.
const { dataDir } = await servers.startGateway('short', 0)
await servers.stop()
cpSync(dataDir, join(dirname(dataDir), 'long'), { recursive: true })
const fileOf = (name: string): string => join(dirname(dataDir), name, `${NETWORK.name}-sample`, 'products.sqlite')
const extents = [await lengthen(fileOf('short'), 0), await lengthen(fileOf('long'), snapshots)] as const
const gateways = [await servers.startGateway('short', 0), await servers.startGateway('long', 0)] as const
const measured = (await openCases(gateways)).map((each) => ({ each, micros: [[], []] as [number[], number[]] }))
for (let round = 0; round <= rounds; round++)
  for (const { each, micros } of measured)
    for (const at of [0, 1] as const) {
      const [{ port, pid }, next] = [gateways[at], each.prepare(gateways[at], extents[at])]
      const cost = await costOf([pid], { port, connections: CONNECTIONS, expected: each.expected, seconds, next })
      // The first round warms up.
      if (round > 0) micros[at].push(cost)
    }
const range = (figures: readonly number[]): string =>
  `${median(figures).toFixed(0)} (${Math.min(...figures).toFixed(0)} to ${Math.max(...figures).toFixed(0)})`
// The first time reads the snapshots of 90 days, later ones only those that are new.
for (const gateway of gateways) await measureNewFacts(gateway)
const fresh = [await measureNewFacts(gateways[0]), await measureNewFacts(gateways[1])]
sayTable([
  ['µs of CPU per request', ...extents.map(({ count }) => count), 'ratio'],
  ...measured.map(({ each, micros: [short, long] }) => [
    each.name,
    range(short),
    range(long),
    (median(long) / median(short)).toFixed(2),
  ]),
  [`${STATS}, new figures`, ...fresh.map((micros) => micros.toFixed(0)), ''],
])
