/**
 * `npm run bench:catalog`: what a thousand upstream products cost beside ten: start, rebuild, memory, and processor
 * time per request. Both gateways run in this process and take turns, so that noise falls on both.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { readConfig } from '../../gateway/config/config.ts'
import { createGateway } from '../../gateway/compose.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import type { Settler } from '../../gateway/methods/payment-method.ts'

const SIZES = [10, 1000] as const
const ROUNDS = 9
const REQUESTS = 2000
const AT_ONCE = 8

const SERVICE = { name: 'Bench', title: 'A bench', summary: 'Many.', description: 'Many products.', version: '0.1.0' }

/** Nothing is paid here: only quotes are asked for. */
const NOBODY: Settler = {
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

/** What it took: time, and time of the processor, which a busy machine does not stretch. */
async function timed<Result>(work: () => Promise<Result>): Promise<readonly [Result, took: string]> {
  const [began, used] = [performance.now(), process.cpuUsage()]
  const result = await work()
  const { user, system } = process.cpuUsage(used)
  return [result, `${Math.round(performance.now() - began)} (${Math.round((user + system) / 1000)})`]
}

function heapMb(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 1e6
}

/** A gateway with that many products, and what it took. */
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
    settler: NOBODY,
    sandbox: null,
    close: async () => {},
  } as const
  const before = heapMb()
  const log = createLog('silent')
  const [gateway, start] = await timed(() => createGateway(config, { settlement, inMemory: true, log }))
  const heap = heapMb() - before
  write('x/p-3.json', product(3, '0.006'))
  const [mistakes, rebuild] = await timed(() => gateway.reload())
  if (mistakes.length > 0) throw new Error(JSON.stringify(mistakes[0]))
  const url = await gateway.listen()
  const pool = new Pool(url, { connections: AT_ONCE })
  return {
    count,
    start,
    rebuild,
    heapMb: Math.round(heap * 10) / 10,
    /** Processor microseconds for one bare call, client and server together. */
    async perRequest(): Promise<number> {
      let left = REQUESTS
      const began = process.cpuUsage()
      const caller = async (): Promise<void> => {
        while (left-- > 0) {
          const { body } = await pool.request({ path: `/v1/x/p-${(left * 7919) % count}/monday`, method: 'GET' })
          await body.dump()
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, caller))
      const { user, system } = process.cpuUsage(began)
      return (user + system) / REQUESTS
    },
    async close() {
      await pool.close()
      await gateway.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The least disturbed round: what else the machine does can only add to a cost. */
const least = (values: readonly number[]): number => Math.min(...values)

const places = []
for (const count of SIZES) places.push(await open(count))
const costs = places.map((): number[] => [])
for (let round = 0; round <= ROUNDS; round++)
  for (const [at, place] of places.entries()) {
    const cost = await place.perRequest()
    // The first round warms up.
    if (round > 0) costs[at]?.push(cost)
  }
const rows = places.map(({ count, start, rebuild, heapMb: heap }, at) => ({
  products: count,
  'start, ms (CPU)': start,
  'rebuild, ms (CPU)': rebuild,
  'heap, MB': heap,
  'request, µs': Math.round(least(costs[at] ?? [])),
}))
console.table(rows)
const [few = Number.NaN, many = Number.NaN] = costs.map(least)
process.stdout.write(
  `A request among ${SIZES[1]} products costs ${(many / few).toFixed(2)} times one among ${SIZES[0]}.\n`,
)
for (const place of places) await place.close()
