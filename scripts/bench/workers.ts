/**
 * `npm run bench:workers`: what a call costs in one process and in two workers on one port, as CPU of all processes, the
 * primary included. The workers get as many callers each as the one process has, and then as many in all: fewer callers
 * of a process share a sync of the journal. Rounds take turns, so that other work on the machine affects all; compare the
 * ratios.
 *
 * The callers have the last core, and the gateways share the others. Two workers and callers that ask again at once would
 * push each other from two cores, and a call would pay for that: `--anywhere` shows it. Needs Linux with taskset.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { readFlags, readNumber } from '../command-line.ts'
import { readRequirement } from '../pay/payment.ts'
import { type Expected, requestBytes, sendLoad } from './calls/load.ts'
import { createBuyer, headerOf, newWallets } from './calls/payments.ts'
import { familyOf } from '../process-family.ts'
import { textTable } from '../text-table.ts'
import { type Server, Servers } from './calls/servers.ts'
import { cpuBetween, readProcessCpu } from './cpu-time.ts'

const USAGE = `Usage: npm run bench:workers [-- OPTIONS]

  --rounds N   rounds of each call (default 5)
  --seconds S  seconds of each call in a round (default 3)
  --anywhere   callers and gateways run on any core`
const { values } = readFlags(USAGE, {
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    anywhere: { type: 'boolean', default: false },
  },
})
const ROUNDS = readNumber('--rounds', values.rounds, 1)
const SECONDS = readNumber('--seconds', values.seconds, 0.1)
/** Callers of one process. */
const CALLERS = 32
/** Code is compiled while it runs, in each worker. */
const WARM_UP_SECONDS = 4
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

/** Keeps processes, and all that they have started, on some cores, which are listed as in 0-2,5. */
function keepOn(cores: string, pids: readonly number[]): void {
  for (const pid of pids.flatMap(familyOf)) execFileSync('taskset', ['-acp', cores, String(pid)])
}

interface Setup {
  readonly server: Server
  readonly connections: number
  /** Microseconds of CPU that a request cost, by case and round. */
  readonly micros: Map<Case, number[]>
}

/** Sends load for some seconds. Returns the microseconds of CPU that a request cost. */
async function measure(one: Case, { server, connections }: Setup, seconds: number): Promise<number> {
  const next = one.prepare(server, Math.ceil(seconds * 2_500))
  const before = familyOf(server.pid).map((pid) => ({ pid, cpu: readProcessCpu(pid) }))
  const requests = await sendLoad({
    port: server.port,
    connections,
    expected: one.expected,
    seconds,
    next,
    // Where callers and gateways share cores, callers that never sleep would keep one.
    sleeps: true,
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
  const last = cpus().length - 1
  if (last > 0 && !values.anywhere) {
    // This process's family are the gateways too, which the second line moves again.
    keepOn(String(last), [process.pid])
    keepOn(`0-${last - 1}`, [one.pid, two.pid])
  }
  const setUp = (server: Server, connections: number): Setup => ({ server, connections, micros: new Map() })
  const single = setUp(one, CALLERS)
  const [asManyEach, asManyInAll] = [setUp(two, 2 * CALLERS), setUp(two, CALLERS)]
  for (const each of cases) for (const warmed of [single, asManyEach]) await measure(each, warmed, WARM_UP_SECONDS)
  for (let round = 0; round < ROUNDS; round++)
    for (const each of cases)
      for (const setup of [single, asManyEach, asManyInAll])
        setup.micros.set(each, [...(setup.micros.get(each) ?? []), await measure(each, setup, SECONDS)])
  const microsOf = ({ micros }: Setup, each: Case): readonly number[] => micros.get(each) ?? []
  const ratios = (each: Case, setup: Setup): string => {
    const ones = microsOf(single, each)
    const all = microsOf(setup, each).map((micros, round) => micros / (ones[round] as number))
    const [middle, lowest, highest] = [median(all), Math.min(...all), Math.max(...all)].map((one) => one.toFixed(2))
    return `${middle} (${lowest} to ${highest})`
  }
  const rows = cases.map((each) => [
    each.name,
    ...[single, asManyEach, asManyInAll].map((setup) => median(microsOf(setup, each)).toFixed(0)),
    ratios(each, asManyEach),
    ratios(each, asManyInAll),
  ])
  const callers = [`${CALLERS} callers`, `${CALLERS} each`, `${CALLERS} in all`]
  process.stdout.write(
    `${textTable([
      ['µs of CPU per request', 'one process', 'two workers', 'two workers', 'ratio', 'ratio'],
      ['', ...callers, ...callers.slice(1)],
      ...rows,
    ])}\n`,
  )
} finally {
  await servers.stop()
  const requests = readFileSync(counts, 'utf8').trim().split('\n').map(Number)
  const all = requests.reduce((sum, each) => sum + each, 0)
  console.log(`calls by each worker: ${requests.map((each) => `${((each / all) * 100).toFixed(1)} %`).join(', ')}`)
  rmSync(folder, { recursive: true, force: true })
}
