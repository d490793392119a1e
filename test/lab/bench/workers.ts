/**
 * `npm run lab -- workers`: what a call costs in one process and in two workers on one port, as CPU of all processes, the
 * primary included. The workers get as many callers each as the one process has, and then as many in all: fewer callers
 * of a process share a sync of the journal. Rounds take turns, so that other work on the machine affects all; compare the
 * ratios.
 *
 * The callers have the last core, and the gateways share the others. Two workers and callers that ask again at once would
 * push each other from two cores, and a call would pay for that: `--anywhere` shows it. Needs Linux with taskset.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { median } from '../../../plugins/lib/quant/rolling-median.ts'
import { familyOf } from '../../support/process-family.ts'
import { flag, newFolder, number, readOptions, say, sayTable } from '../experiment.ts'
import { costOf, type Expected, requestBytes } from './calls/load.ts'
import { createBuyer, headerOf, newWallets, requirementOf } from './calls/payments.ts'
import { type Server, Servers } from './calls/servers.ts'

const { rounds, seconds, anywhere } = readOptions({
  rounds: number('N', 'rounds of each call', 5, 1),
  seconds: number('S', 'seconds of each call in a round', 3, 0.1),
  anywhere: flag('callers and gateways run on any core'),
}).values
/** Callers of one process. */
const CALLERS = 32
/** Code is compiled while it runs, in each worker. */
const WARM_UP_SECONDS = 4
const WALLETS = 200
const SOLD = '/v1/regime/current'

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
  const buy = createBuyer(newWallets(WALLETS), await requirementOf(server.url + SOLD))
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
function measure(one: Case, { server, connections }: Setup, seconds: number): Promise<number> {
  const next = one.prepare(server, Math.ceil(seconds * 2_500))
  // Where callers and gateways share cores, callers that never sleep would keep one.
  const load = { port: server.port, connections, expected: one.expected, seconds, next, sleeps: true }
  return costOf(familyOf(server.pid), load)
}

const counts = join(newFolder(), 'counts')
const servers = new Servers()
const one = await servers.startGateway('one process', 0)
const two = await servers.startGateway('two workers', 0, { workers: 2, counts })
const cases = await openCases(one)
const last = cpus().length - 1
if (last > 0 && !anywhere) {
  // This process's family are the gateways too, which the second line moves again.
  keepOn(String(last), [process.pid])
  keepOn(`0-${last - 1}`, [one.pid, two.pid])
}
const setUp = (server: Server, connections: number): Setup => ({ server, connections, micros: new Map() })
const single = setUp(one, CALLERS)
const [asManyEach, asManyInAll] = [setUp(two, 2 * CALLERS), setUp(two, CALLERS)]
for (const each of cases) for (const warmed of [single, asManyEach]) await measure(each, warmed, WARM_UP_SECONDS)
for (let round = 0; round < rounds; round++)
  for (const each of cases)
    for (const setup of [single, asManyEach, asManyInAll])
      setup.micros.set(each, [...(setup.micros.get(each) ?? []), await measure(each, setup, seconds)])
const microsOf = ({ micros }: Setup, each: Case): readonly number[] => micros.get(each) ?? []
const ratios = (each: Case, setup: Setup): string => {
  const ones = microsOf(single, each)
  const all = microsOf(setup, each).map((micros, round) => micros / (ones[round] as number))
  const [middle, lowest, highest] = [median(all), Math.min(...all), Math.max(...all)].map((one) => one.toFixed(2))
  return `${middle} (${lowest} to ${highest})`
}
const callers = [`${CALLERS} callers`, `${CALLERS} each`, `${CALLERS} in all`]
sayTable([
  ['µs of CPU per request', 'one process', 'two workers', 'two workers', 'ratio', 'ratio'],
  ['', ...callers, ...callers.slice(1)],
  ...cases.map((each) => [
    each.name,
    ...[single, asManyEach, asManyInAll].map((setup) => median(microsOf(setup, each)).toFixed(0)),
    ratios(each, asManyEach),
    ratios(each, asManyInAll),
  ]),
])
// The workers write at their end how many calls each has answered.
await servers.stop()
const requests = readFileSync(counts, 'utf8').trim().split('\n').map(Number)
const all = requests.reduce((sum, each) => sum + each, 0)
say(`calls by each worker: ${requests.map((each) => `${((each / all) * 100).toFixed(1)} %`).join(', ')}`)
