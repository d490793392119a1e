/**
 * `npm run bench:workers`: what a call costs in one process and in two workers on one port, as
 * CPU of all processes, the primary included. Rounds take turns, so that other work on the machine affects both; compare
 * the ratios. Needs Linux.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { readFlags, readNumber } from '../command-line.ts'
import { readRequirement } from '../pay/payment.ts'
import { type Expected, requestBytes, sendLoad } from './calls/load.ts'
import { createBuyer, headerOf, newWallets } from './calls/payments.ts'
import { familyOf } from '../process-family.ts'
import { type Server, Servers } from './calls/servers.ts'
import { cpuBetween, readProcessCpu } from './cpu-time.ts'

const USAGE = `Usage: npm run bench:workers [-- OPTIONS]

  --rounds N   rounds of each call (default 5)
  --seconds S  seconds of each call in a round (default 3)`
const { values } = readFlags(USAGE, {
  options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '3' } },
})
const ROUNDS = readNumber('--rounds', values.rounds, 1)
const SECONDS = readNumber('--seconds', values.seconds, 0.1)
const CONNECTIONS = 32
const WALLETS = 200
const SOLD = '/v1/regime/current'
/** What a server does after its answers belongs to their cost. */
const AFTERWARDS_MS = 150

interface Case {
  readonly name: string
  readonly expected: Expected
  /** Returns the requests for one measurement; `count` limits them if each can be sent only once. */
  prepare(server: Server, count: number): () => Buffer | null
}

const repeated = (name: string, path: string, status: number): Case => ({
  name,
  expected: { status },
  prepare({ port }) {
    const bytes = requestBytes(port, 'GET', path)
    return () => bytes
  },
})

async function openCases(server: Server): Promise<readonly Case[]> {
  const response = await fetch(server.url + SOLD)
  const buy = createBuyer(
    newWallets(WALLETS),
    readRequirement(response.headers.get('payment-required'), await response.text(), false),
  )
  const paid: Case = {
    name: 'paid, small answer',
    expected: { status: 200 },
    prepare({ port }, count) {
      const requests = Array.from({ length: count }, () =>
        requestBytes(port, 'GET', SOLD, { 'payment-signature': headerOf(buy()) }),
      )
      return () => requests.pop() ?? null
    },
  }
  return [
    repeated('402', SOLD, 402),
    repeated('free JSON, /v1/x', '/v1/x', 200),
    repeated('document, /pricing.json', '/pricing.json', 200),
    repeated('page, /pricing', '/pricing', 200),
    paid,
  ]
}

/** Sends load for some seconds. Returns the microseconds of CPU that a request cost. */
async function measure(one: Case, server: Server, seconds: number): Promise<number> {
  const next = one.prepare(server, Math.ceil(seconds * 1_500))
  const before = familyOf(server.pid).map((pid) => ({ pid, cpu: readProcessCpu(pid) }))
  const requests = await sendLoad({
    port: server.port,
    connections: CONNECTIONS,
    expected: one.expected,
    seconds,
    next,
  })
  await sleep(AFTERWARDS_MS)
  return before.reduce((sum, { pid, cpu }) => sum + cpuBetween(cpu, readProcessCpu(pid)), 0) / requests
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-workers-'))
const counts = join(folder, 'counts')
const servers = new Servers(folder)
try {
  const one = await servers.startGateway('one process', 0)
  const two = await servers.startGateway('two workers', 0, { workers: 2, counts })
  const cases = await openCases(one)
  for (const each of cases) for (const server of [one, two]) await measure(each, server, 1.5)
  const results = cases.map((each) => ({ each, ones: [] as number[], twos: [] as number[] }))
  for (let round = 0; round < ROUNDS; round++)
    for (const { each, ones, twos } of results) {
      ones.push(await measure(each, one, SECONDS))
      twos.push(await measure(each, two, SECONDS))
    }
  const column = (text: string | number): string => String(text).padStart(14)
  console.log(
    'µs of CPU per request'.padEnd(26) +
      ['one process', 'two workers', 'ratio', 'lowest', 'highest'].map(column).join(''),
  )
  for (const { each, ones, twos } of results) {
    const ratios = twos.map((micros, round) => micros / (ones[round] as number))
    const figures = [median(ratios), Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2))
    console.log(
      each.name.padEnd(26) + [median(ones).toFixed(0), median(twos).toFixed(0), ...figures].map(column).join(''),
    )
  }
} finally {
  await servers.stop()
  const requests = readFileSync(counts, 'utf8').trim().split('\n').map(Number)
  const all = requests.reduce((sum, each) => sum + each, 0)
  console.log(`calls by each worker: ${requests.map((each) => `${((each / all) * 100).toFixed(1)} %`).join(', ')}`)
  rmSync(folder, { recursive: true, force: true })
}
