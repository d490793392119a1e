/**
 * `npm run bench:snapshots`: does a call cost more when the history is
 * long? Starts the built gateway with the snapshots of the sample, about 0.4 million, and once more with as many as asked
 * for. Compares the CPU of /v1/stats and of a paid history page of 1,000 rows: the newest rows, and rows from anywhere in
 * the history. Rounds take turns; compare the ratios. Needs Linux, and a gigabyte of disk for ten million snapshots.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../../gateway/stores/database.ts'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { SNAPSHOT_COLUMNS } from '../../plugins/regime/snapshots.ts'
import { readFlags, readNumber } from '../command-line.ts'
import { readRequirement } from '../pay/payment.ts'
import { type Expected, requestBytes, sendLoad } from './calls/load.ts'
import { createBuyer, headerOf, newWallets } from './calls/payments.ts'
import { NETWORK, type Server, Servers } from './calls/servers.ts'
import { cpuBetween, readProcessCpu } from './cpu-time.ts'

const USAGE = `Usage: npm run bench:snapshots [-- OPTIONS]

  --snapshots N  length of the long history (default 10000000)
  --rounds N     rounds of each call (default 5)
  --seconds S    seconds of each call in a round (default 3)`
const CONNECTIONS = 8
const STATS = '/v1/stats'
const HISTORY = '/v1/regime/history'
const ROWS = 1_000
const MINUTE = 60
/** Columns that a copy has earlier. */
const TIMES: ReadonlySet<string> = new Set(['as_of', 'since', 'known_at', 'computed_at'])
/** /v1/stats computes its figures at most this often. */
const FACTS_SECONDS = 60
/** What a server does after its answers belongs to their cost. */
const AFTERWARDS_MS = 150

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
  const response = await fetch(url + HISTORY)
  const requirement = readRequirement(response.headers.get('payment-required'), await response.text(), false)
  return createBuyer(newWallets(200), requirement)
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

/** Sends load for some seconds. Returns the microseconds of CPU that a request cost. */
async function measure(one: Case, server: Server, extent: Extent, seconds: number): Promise<number> {
  const next = one.prepare(server, extent)
  const before = readProcessCpu(server.pid)
  const { port } = server
  const requests = await sendLoad({ port, connections: CONNECTIONS, expected: one.expected, seconds, next })
  await sleep(AFTERWARDS_MS)
  return cpuBetween(before, readProcessCpu(server.pid)) / requests
}

/** The microseconds of CPU of a call that computes the figures of /v1/stats anew. */
async function measureNewFacts({ pid, url }: Server): Promise<number> {
  await sleep(FACTS_SECONDS * 1000)
  const before = readProcessCpu(pid)
  await (await fetch(url + STATS)).text()
  return cpuBetween(before, readProcessCpu(pid))
}

const { values } = readFlags(USAGE, {
  options: {
    snapshots: { type: 'string', default: '10000000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
  },
})
const snapshots = readNumber('--snapshots', values.snapshots, 1)
const rounds = readNumber('--rounds', values.rounds, 1)
const seconds = readNumber('--seconds', values.seconds, 0.1)
const folder = mkdtempSync(join(tmpdir(), 'tollgate-snapshots-'))
const data = (name: string): string => join(folder, name, `${NETWORK.name}-sample`)
const servers = new Servers(folder)
try {
  // The first start computes the history of the sample.
  await servers.startGateway('short', 0)
  await servers.stop()
  cpSync(data('short'), data('long'), { recursive: true })
  const extents = [
    await lengthen(join(data('short'), 'products.sqlite'), 0),
    await lengthen(join(data('long'), 'products.sqlite'), snapshots),
  ] as const
  const gateways = [await servers.startGateway('short', 0), await servers.startGateway('long', 0)] as const
  const cases = await openCases(gateways)
  const measured = cases.map((each) => ({ each, micros: [[], []] as [number[], number[]] }))
  for (let round = 0; round <= rounds; round++)
    for (const { each, micros } of measured)
      for (const at of [0, 1] as const) {
        const cost = await measure(each, gateways[at], extents[at], seconds)
        // The first round warms up.
        if (round > 0) micros[at].push(cost)
      }
  const column = (text: string | number): string => String(text).padStart(14)
  const range = (figures: readonly number[]): string =>
    `${median(figures).toFixed(0)} (${Math.min(...figures).toFixed(0)} to ${Math.max(...figures).toFixed(0)})`
  console.log(
    'µs of CPU per request'.padEnd(24) +
      [...extents.map(({ count }) => count), 'ratio'].map((head) => column(head).padStart(24)).join(''),
  )
  for (const { each, micros } of measured) {
    const ratio = (median(micros[1]) / median(micros[0])).toFixed(2)
    console.log(each.name.padEnd(24) + [...micros.map(range), ratio].map((text) => column(text).padStart(24)).join(''))
  }
  // The first time reads the snapshots of 90 days, later ones only those that are new.
  for (const gateway of gateways) await measureNewFacts(gateway)
  const fresh = [await measureNewFacts(gateways[0]), await measureNewFacts(gateways[1])]
  console.log(
    `${STATS}, new figures`.padEnd(24) + fresh.map((micros) => column(micros.toFixed(0)).padStart(24)).join(''),
  )
} finally {
  await servers.stop()
  rmSync(folder, { recursive: true, force: true })
}
