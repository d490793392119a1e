/**
 * `npm run lab -- catalog`: compares a catalog of 1000 upstream products with one of 10: time to start, time to rebuild
 * after one document has changed, and memory, of built gateways in this process; then the CPU of an unpaid request, of
 * gateways in processes of their own that take turns, so that noise affects both. The gateway of 1000 is asked for the
 * same 10 as the other, and for all in turn. So are two node:http servers that send the same 10 and 1000 answers: their
 * difference is what reading more memory costs.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import pino from 'pino'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { median } from '../../../plugins/lib/quant/rolling-median.ts'
import { newFolder, readOptions, root, say } from '../experiment.ts'
import { collectGarbage } from '../fuzz/loop.ts'
import { answerOf } from './calls/cases.ts'
import { costOf, requestBytes } from './calls/load.ts'
import { type Server, Servers } from './calls/servers.ts'
import { cpuMicros } from './cpu-time.ts'
import type { Settler } from '../../../gateway/methods/payment-method.ts'

readOptions({})
const built = (module: string): Promise<unknown> =>
  import(pathToFileURL(join(root, 'dist/gateway', `${module}.js`)).href)
const { createGateway } = (await built('compose')) as typeof import('../../../gateway/compose.ts')
const { readConfig } = (await built('config/config')) as typeof import('../../../gateway/config/config.ts')

const SIZES = [10, 1000] as const
const REBUILDS = 7
/** A document is edited long after the one before. */
const BETWEEN_EDITS_MS = 2_100
const ROUNDS = 15
const SECONDS = 2
const CONNECTIONS = 8

const SERVICE = { name: 'Bench', title: 'A bench', summary: 'Many.', description: 'Many products.', version: '0.1.0' }

/** Settles nothing: the benchmark only asks for quotes. */
const NO_SETTLER: Settler = {
  kind: 'scripted',
  check: async () => null,
  settle: async () => ({ state: 'pending', transaction: null }),
  status: async () => ({ state: 'pending', transaction: null }),
  health: () => ({ ready: true }),
  close: async () => {},
}

function product(index: number, price = '0.005') {
  const day = { type: 'string', pattern: '^[a-z]{2,20}$' }
  return {
    product: `p-${index}`,
    family: 'x',
    title: `Product ${index}`,
    summary: 'One of many.',
    upstream: { url: `http://127.0.0.1:9/${index}/{day}` },
    operations: {
      [`getP${index}`]: {
        route: `GET /v1/x/p-${index}/{day}`,
        summary: 'One of many.',
        price,
        params: { type: 'object', required: ['day'], properties: { day } },
        query: { type: 'object', properties: { limit: { type: 'integer', default: index } } },
        response: { type: 'object', required: [`a${index}`] },
        tool: true,
      },
    },
  }
}

/** Milliseconds. */
interface Took {
  readonly wall: number
  readonly cpu: number
}

/** Returns the result of `work`, and how long it took. */
async function timed<Result>(work: () => Promise<Result>): Promise<readonly [Result, Took]> {
  const [began, cpuBefore] = [performance.now(), cpuMicros()]
  const result = await work()
  return [result, { wall: performance.now() - began, cpu: (cpuMicros() - cpuBefore) / 1000 }]
}

/** The medians as text, "wall (CPU)". */
function textOf(took: readonly Took[]): string {
  const wall = median(took.map((one) => one.wall))
  return `${Math.round(wall)} (${Math.round(median(took.map((one) => one.cpu)))})`
}

function heapMb(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed / 1e6
}

/** Writes a catalog of `count` products. Returns the settings of a gateway that sells it. */
function writeCatalog(folder: string, count: number): Readonly<Record<'CATALOG_DIR' | 'PLUGIN_DIRS', string>> {
  const catalog = join(folder, 'catalog')
  mkdirSync(join(catalog, 'x'), { recursive: true })
  mkdirSync(join(folder, 'plugins'))
  writeFileSync(join(catalog, 'service.json'), JSON.stringify(SERVICE))
  for (let index = 0; index < count; index++) writeProduct(catalog, product(index))
  return { CATALOG_DIR: catalog, PLUGIN_DIRS: join(folder, 'plugins') }
}

function writeProduct(catalog: string, written: ReturnType<typeof product>): void {
  writeFileSync(join(catalog, 'x', `${written.product}.json`), JSON.stringify(written))
}

/** Starts a gateway with `count` products in this process, changes one price, and measures both. */
async function measureBuild(folder: string, count: number) {
  const places = writeCatalog(folder, count)
  const config = { ...readConfig({ DATA_DIR: join(folder, 'data'), ...places }), port: 0 }
  const network = NETWORKS['base-sepolia']
  const settlement = {
    network,
    payTo: `0x${'a'.repeat(40)}`,
    settler: NO_SETTLER,
    sandbox: null,
    close: async () => {},
  } as const
  const before = heapMb()
  const log = pino({ level: 'silent' })
  const [gateway, start] = await timed(() => createGateway(config, { settlement, inMemory: true, log }))
  const heap = heapMb() - before
  const rebuilds: Took[] = []
  for (let edit = 1; edit <= REBUILDS; edit++) {
    await sleep(BETWEEN_EDITS_MS)
    writeProduct(places.CATALOG_DIR, product(3, `0.0${edit}`))
    const [issues, took] = await timed(() => gateway.reload())
    if (issues.length > 0) throw new Error(JSON.stringify(issues[0]))
    rebuilds.push(took)
  }
  await gateway.close()
  return {
    products: count,
    'start, ms (CPU)': textOf([start]),
    'rebuild, ms (CPU)': textOf(rebuilds),
    'heap, MB': Math.round(heap * 10) / 10,
  }
}

const pathOf = (index: number): string => `/v1/x/p-${index}/monday`

/** A server that is asked for `count` of its products in turn, and what a request cost in each round. */
interface Called {
  readonly server: Server
  readonly count: number
  readonly micros: number[]
}

/** Starts a node:http server that sends the answers of a gateway. */
async function startPlain(servers: Servers, gateway: Server, count: number): Promise<Called> {
  const answers = []
  for (let index = 0; index < count; index++) answers.push(await answerOf(gateway, { path: pathOf(index) }))
  return { server: await servers.startPlain(answers), count, micros: [] }
}

/** Returns the CPU microseconds of one request without payment. */
async function perRequest({ server, count }: Called): Promise<number> {
  const requests = Array.from({ length: count }, (_, index) => requestBytes(server.port, 'GET', pathOf(index)))
  let nth = 0
  const next = (): Buffer => requests[(nth++ * 7919) % count] as Buffer
  const expected = { status: 402 }
  return costOf([server.pid], { port: server.port, connections: CONNECTIONS, seconds: SECONDS, expected, next })
}

/** How many times as much a request costs as with `other`: the median of the rounds, because a machine may slow down between them. */
function ratio({ micros }: Called, other: Called): string {
  return median(micros.map((cost, round) => cost / (other.micros[round] as number))).toFixed(2)
}

const medianOf = ({ micros }: Called): string => `${median(micros).toFixed(1)} µs`

const servers = new Servers()
const rows = []
for (const count of SIZES) rows.push(await measureBuild(newFolder(), count))
console.table(rows)
const gateways: Called[] = []
for (const count of SIZES) {
  const settings = writeCatalog(newFolder(), count)
  const server = await servers.startGateway(`gateway-${count}`, 0, { settings })
  gateways.push({ server, count, micros: [] })
}
const called = [...gateways]
for (const { server } of gateways.slice(1)) called.push({ server, count: SIZES[0], micros: [] })
for (const { server, count } of gateways) called.push(await startPlain(servers, server, count))
for (let round = 0; round <= ROUNDS; round++)
  for (const one of called) {
    const cost = await perRequest(one)
    // The first round warms up.
    if (round > 0) one.micros.push(cost)
  }
const [few, many, same, plainFew, plainMany] = called as [Called, Called, Called, Called, Called]
say(
  `A request costs ${medianOf(few)} with ${SIZES[0]} products. For the same ${SIZES[0]} of ${SIZES[1]} it costs ` +
    `${ratio(same, few)} times as much, for all ${SIZES[1]} in turn ${ratio(many, few)} times. With a node:http server ` +
    `that sends the same answers it costs ${medianOf(plainFew)} for ${SIZES[0]}, and ${ratio(plainMany, plainFew)} times ` +
    `as much for ${SIZES[1]}.`,
)
