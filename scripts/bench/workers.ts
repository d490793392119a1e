/**
 * `npm run bench:workers`: what a call costs in one process and in two workers on one port, as CPU of all processes, the
 * primary included. The workers get as many callers each as the one process has, and then as many in all: fewer callers
 * of a process share a sync of the journal. A node:http server that sends the same bytes, in one process and in two
 * workers, shows what two processes and their callers cost a machine with two cores. Rounds take turns, so that other work
 * on the machine affects all; compare the ratios. Needs Linux.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { readFlags, readNumber } from '../command-line.ts'
import { readRequirement } from '../pay/payment.ts'
import { answerOf } from './calls/cases.ts'
import { type Expected, requestBytes, sendLoad } from './calls/load.ts'
import { createBuyer, headerOf, newWallets } from './calls/payments.ts'
import { familyOf } from '../process-family.ts'
import { textTable } from '../text-table.ts'
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
  /** Address of what node:http sends as well; null for what each request is answered anew. */
  readonly path: string | null
  readonly expected: Expected
  /** Returns the requests for one measurement; `count` limits them if each can be sent only once. */
  prepare(server: Server, count: number): () => Buffer | null
}

const repeated = (name: string, path: string, status: number): Case => ({
  name,
  path,
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
    path: null,
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
    // The callers would take one core, and the workers share the other.
    sleeps: true,
  })
  await sleep(AFTERWARDS_MS)
  return before.reduce((sum, { pid, cpu }) => sum + cpuBetween(cpu, readProcessCpu(pid)), 0) / requests
}

/** Starts node:http servers that send the answers of a gateway, in one process and in two workers. */
async function startPlain(
  servers: Servers,
  folder: string,
  gateway: Server,
  cases: readonly Case[],
): Promise<readonly [Server, Server]> {
  const answers = []
  for (const { path } of cases) if (path !== null) answers.push(await answerOf(gateway, { path }))
  const file = join(folder, 'answers.json')
  writeFileSync(file, JSON.stringify(answers))
  return [
    await servers.startBaseline('plain', { answers: file }),
    await servers.startBaseline('plain', { answers: file, workers: 2 }),
  ]
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-workers-'))
const counts = join(folder, 'counts')
const servers = new Servers(folder)
try {
  const one = await servers.startGateway('one process', 0)
  const two = await servers.startGateway('two workers', 0, { workers: 2, counts })
  const cases = await openCases(one)
  const setUp = (server: Server, connections: number): Setup => ({ server, connections, micros: new Map() })
  const single = setUp(one, CALLERS)
  const [asManyEach, asManyInAll] = [setUp(two, 2 * CALLERS), setUp(two, CALLERS)]
  const [plainOne, plainTwo] = await startPlain(servers, folder, one, cases)
  const [plainSingle, plainEach] = [setUp(plainOne, CALLERS), setUp(plainTwo, 2 * CALLERS)]
  const setups = [single, asManyEach, asManyInAll, plainSingle, plainEach]
  const setupsFor = ({ path }: Case): readonly Setup[] => (path === null ? setups.slice(0, 3) : setups)
  for (const each of cases)
    for (const warmed of setupsFor(each)) if (warmed !== asManyInAll) await measure(each, warmed, WARM_UP_SECONDS)
  for (let round = 0; round < ROUNDS; round++)
    for (const each of cases)
      for (const setup of setupsFor(each))
        setup.micros.set(each, [...(setup.micros.get(each) ?? []), await measure(each, setup, SECONDS)])
  const microsOf = ({ micros }: Setup, each: Case): readonly number[] => micros.get(each) ?? []
  const ratios = (each: Case, setup: Setup, base: Setup): string => {
    const ones = microsOf(base, each)
    const all = microsOf(setup, each).map((micros, round) => micros / (ones[round] as number))
    if (all.length === 0) return ''
    const [middle, lowest, highest] = [median(all), Math.min(...all), Math.max(...all)].map((one) => one.toFixed(2))
    return `${middle} (${lowest} to ${highest})`
  }
  const rows = cases.map((each) => [
    each.name,
    ...[single, asManyEach, asManyInAll].map((setup) => median(microsOf(setup, each)).toFixed(0)),
    ratios(each, asManyEach, single),
    ratios(each, asManyInAll, single),
    ratios(each, plainEach, plainSingle),
  ])
  const callers = [`${CALLERS} callers`, `${CALLERS} each`, `${CALLERS} in all`]
  process.stdout.write(
    `${textTable([
      ['µs of CPU per request', 'one process', 'two workers', 'two workers', 'ratio', 'ratio', 'ratio of node:http'],
      ['', ...callers, ...callers.slice(1), `${CALLERS} each`],
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
