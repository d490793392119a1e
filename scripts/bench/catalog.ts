/**
 * `npm run bench:catalog`: compares a catalog of 1000 upstream products with one of 10: time to start, time to rebuild
 * after one document has changed, memory, and CPU time per request. Both are built gateways in this process, and take
 * turns, so that noise affects both. So do two node:http servers that send the same 10 and 1000 answers: their difference
 * is what reading more memory costs.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import pino from 'pino'
import { Pool } from 'undici'
import { NETWORKS } from '../../gateway/config/networks.ts'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { readFlags } from '../command-line.ts'
import { cpuMicros } from './cpu-time.ts'
import type { Settler } from '../../gateway/methods/payment-method.ts'

readFlags('Usage: npm run bench:catalog', {})
const built = (module: string): Promise<unknown> =>
  import(pathToFileURL(resolve(import.meta.dirname, '../../dist/gateway', `${module}.js`)).href)
const { createGateway } = (await built('compose')) as typeof import('../../gateway/compose.ts')
const { readConfig } = (await built('config/config')) as typeof import('../../gateway/config/config.ts')

const SIZES = [10, 1000] as const
const REBUILDS = 7
/** A document is edited long after the one before. */
const BETWEEN_EDITS_MS = 2_100
const ROUNDS = 9
const REQUESTS = 20_000
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
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 1e6
}

/** Starts a gateway with `count` products, changes one price, and measures both. */
async function open(count: number) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
  const catalogDir = join(folder, 'catalog')
  mkdirSync(join(catalogDir, 'x'), { recursive: true })
  mkdirSync(join(folder, 'plugins'))
  const write = (file: string, content: object): void => writeFileSync(join(catalogDir, file), JSON.stringify(content))
  write('service.json', SERVICE)
  for (let index = 0; index < count; index++) write(`x/p-${index}.json`, product(index))
  const places = { DATA_DIR: join(folder, 'data'), CATALOG_DIR: catalogDir, PLUGIN_DIRS: join(folder, 'plugins') }
  const config = { ...readConfig(places), port: 0 }
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
    write('x/p-3.json', product(3, `0.0${edit}`))
    const [issues, took] = await timed(() => gateway.reload())
    if (issues.length > 0) throw new Error(JSON.stringify(issues[0]))
    rebuilds.push(took)
  }
  const url = await gateway.listen()
  const pool = new Pool(url, { connections: CONNECTIONS })
  return {
    count,
    start: textOf([start]),
    rebuild: textOf(rebuilds),
    heapMb: Math.round(heap * 10) / 10,
    pool,
    async close() {
      await pool.close()
      await gateway.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A server that is asked for `count` answers in turn. */
interface Called {
  readonly count: number
  readonly pool: Pool
  close(): Promise<void>
}

const pathOf = (index: number): string => `/v1/x/p-${index}/monday`

/** Headers that node:http sets itself. */
const BY_CONNECTION = ['date', 'connection', 'keep-alive', 'transfer-encoding']

/** Starts a node:http server that sends the answers of a gateway. */
async function openPlain({ count, pool }: Called): Promise<Called> {
  const answers = new Map<string, { status: number; headers: IncomingHttpHeaders; body: Buffer }>()
  for (let index = 0; index < count; index++) {
    const { statusCode: status, headers, body } = await pool.request({ path: pathOf(index), method: 'GET' })
    const own = Object.entries(headers).filter(([name]) => !BY_CONNECTION.includes(name))
    const bytes = Buffer.from(await body.arrayBuffer())
    answers.set(pathOf(index), { status, headers: Object.fromEntries(own), body: bytes })
  }
  const server = createServer(({ url = '' }, response) => {
    const { status, headers, body } = answers.get(url) ?? { status: 404, headers: {}, body: Buffer.alloc(0) }
    response.writeHead(status, headers).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const plainPool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS })
  return {
    count,
    pool: plainPool,
    async close() {
      await plainPool.close()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Returns the CPU microseconds of one request without payment, for client and server together. */
async function perRequest({ count, pool }: Called): Promise<number> {
  let remaining = REQUESTS
  const cpuBefore = cpuMicros()
  const caller = async (): Promise<void> => {
    while (remaining-- > 0) {
      const { body } = await pool.request({ path: pathOf((remaining * 7919) % count), method: 'GET' })
      await body.dump()
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, caller))
  return (cpuMicros() - cpuBefore) / REQUESTS
}

/** The cheapest round counts, because other work on the machine can only add to a cost. */
const least = (values: readonly number[]): number => Math.min(...values)

const gateways = []
for (const count of SIZES) gateways.push(await open(count))
const servers: readonly Called[] = [...gateways, ...(await Promise.all(gateways.map(openPlain)))]
const costs = servers.map((): number[] => [])
for (let round = 0; round <= ROUNDS; round++)
  for (const [at, server] of servers.entries()) {
    const cost = await perRequest(server)
    // The first round warms up.
    if (round > 0) costs[at]?.push(cost)
  }
const rows = gateways.map(({ count, start, rebuild, heapMb: heap }, at) => ({
  products: count,
  'start, ms (CPU)': start,
  'rebuild, ms (CPU)': rebuild,
  'heap, MB': heap,
  'request, µs': Math.round(least(costs[at] ?? [])),
}))
console.table(rows)
const [few = Number.NaN, many = Number.NaN, plainFew = Number.NaN, plainMany = Number.NaN] = costs.map(least)
process.stdout.write(
  `With ${SIZES[1]} products a request costs ${(many / few).toFixed(2)} times as much as with ${SIZES[0]}: ` +
    `${(many - few).toFixed(1)} µs more. A node:http server pays ${(plainMany - plainFew).toFixed(1)} µs more for ` +
    `${SIZES[1]} such answers (${plainFew.toFixed(0)} and ${plainMany.toFixed(0)} µs).\n`,
)
for (const server of servers) await server.close()
