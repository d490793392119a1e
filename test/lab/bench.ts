/**
 * `npm run lab -- bench`: what a call costs. Measures the CPU that the server process uses per request, for every path of the
 * gateway, plain node:http, bare Express and `@x402/express`. Rounds take turns, so that other work on the machine
 * affects all cases; compare ratios, because microseconds depend on the machine. An answer with a wrong status ends the
 * run. Needs Linux.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { format } from 'prettier'
import { type BudgetLine, judge, medianRatio, record, SLACK, type Verdict } from './bench/calls/budget.ts'
import { type Case, openCases } from './bench/calls/cases.ts'
import { AFTERWARDS_MS, sendLoad } from './bench/calls/load.ts'
import { Servers } from './bench/calls/servers.ts'
import { cpuBetween, loopCpuBetween, type ProcessCpu, readProcessCpu } from './bench/cpu-time.ts'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { textTable } from '../../scripts/text-table.ts'
import { flag, number, readOptions, root, say, texts } from './experiment.ts'

/** How often cases above their limit are measured again, because other work on the machine raises single rounds. */
const RECHECKS = 6
/** Rounds of rechecks last at least this long: what the server does in the background counts less in a long round. */
const RECHECK_SECONDS = 2

const BUDGET = join(root, 'test/lab/bench/budget.json')
const CONNECTIONS = 32
/** Code is compiled while it runs: each case is first called this often, for at most so many periods. */
const WARM_UP = { requests: 2_000, seconds: 1.5, periods: 6 }
/** Called this long before each measurement, which then does not pay for the garbage of the case before it. */
const LEAD_IN_SECONDS = 0.4
const IDLE_SECONDS = 3
/** Payments that are signed for the first measurement of a case, per second. */
const FIRST_RATE = 1_000

interface Measured {
  readonly case: Case
  /** Microseconds of CPU per request in each round, of the process and of its event loop. */
  readonly micros: number[]
  readonly loopMicros: number[]
  requests: number
  /** Requests per second in the last measurement. */
  rate: number
}

interface Figures {
  readonly name: string
  /** Microseconds of CPU per request: the median of the rounds, the lowest and the highest. */
  readonly median: number
  readonly lowest: number
  readonly highest: number
  /** The same in each round. */
  readonly rounds: readonly number[]
  /** The part of the event loop. A process answers at most 1,000,000 / loop requests per second. */
  readonly loop: number
  readonly requests: number
  /** Times as much as the same answer from plain node:http, and as the same step of @x402/express. */
  readonly timesPlain: number | null
  readonly timesX402: number | null
}

async function measure(measured: Measured, seconds: number): Promise<void> {
  const { server, expected, prepare, name } = measured.case
  const next = prepare(Math.ceil(measured.rate * (LEAD_IN_SECONDS + seconds) * 1.3) + 2 * CONNECTIONS)
  // Journal and signature checks need threads of their own, and callers that never sleep would take a core from them.
  const sleeps = measured.case.isPaid
  const load = { port: server.port, connections: CONNECTIONS, expected, next, sleeps }
  const send = (duration: number): Promise<number> =>
    sendLoad({ ...load, seconds: duration }).catch((error: Error) => {
      throw new Error(`${name}: ${error.message}`)
    })
  await send(LEAD_IN_SECONDS)
  await sleep(AFTERWARDS_MS)
  const before = readProcessCpu(server.pid)
  const began = performance.now()
  const requests = await send(seconds)
  if (requests === 0) throw new Error(`${name}: no request was answered`)
  measured.rate = (requests / (performance.now() - began)) * 1000
  await sleep(AFTERWARDS_MS)
  measured.requests += requests
  const after = readProcessCpu(server.pid)
  measured.micros.push(cpuBetween(before, after) / requests)
  measured.loopMicros.push(loopCpuBetween(server.pid, before, after) / requests)
}

/** Prepares the cases: code is compiled while it runs. */
async function warmUp(cases: readonly Case[]): Promise<readonly Measured[]> {
  const all = cases.map((one): Measured => ({ case: one, micros: [], loopMicros: [], requests: 0, rate: FIRST_RATE }))
  for (const measured of all)
    for (let period = 0; period < WARM_UP.periods && measured.requests < WARM_UP.requests; period++)
      await measure(measured, WARM_UP.seconds)
  for (const measured of all) {
    measured.micros.length = 0
    measured.loopMicros.length = 0
    measured.requests = 0
  }
  return all
}

async function measureRounds(all: readonly Measured[], rounds: number, seconds: number): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    process.stderr.write(`round ${round} of ${rounds}\n`)
    for (const measured of all) await measure(measured, seconds)
  }
}

/** Measures the cases of lines above their limit again, until none is above it or the rechecks are used up. */
async function recheck(all: readonly Measured[], lines: readonly BudgetLine[], seconds: number): Promise<void> {
  for (let round = 1; round <= RECHECKS; round++) {
    const above = judgeAll(lines, all).filter(({ isWithinLimit }) => !isWithinLimit)
    if (above.length === 0) return
    process.stderr.write(`above the limit, measured again: ${above.map(({ name }) => name).join(', ')}\n`)
    const doubtful = new Set(above.flatMap(({ of, to }) => [of, to]))
    for (const measured of all)
      if (doubtful.has(measured.case.name)) await measure(measured, Math.max(seconds, RECHECK_SECONDS))
  }
}

function judgeAll(lines: readonly BudgetLine[], all: readonly Measured[]): readonly Verdict[] {
  return judge(lines, new Map(all.map(({ case: { name }, micros }) => [name, micros])))
}

function figuresOf(all: readonly Measured[]): readonly Figures[] {
  const byName = new Map(all.map(({ case: { name }, micros }) => [name, micros]))
  const times = (own: readonly number[], other: string | null): number | null => {
    const base = byName.get(other ?? '')
    return base === undefined ? null : medianRatio(own, base)
  }
  return all.map(({ case: { name, plain, peer }, micros, loopMicros, requests }) => ({
    name,
    median: median(micros),
    lowest: Math.min(...micros),
    highest: Math.max(...micros),
    rounds: micros,
    loop: median(loopMicros),
    requests,
    timesPlain: times(micros, plain),
    timesX402: times(micros, peer),
  }))
}

/**
 * Measures what each server uses per second while nobody calls it, in microseconds. It is part of every figure: at 400
 * calls a second, 10,000 µs are 25 µs per call.
 */
async function measureIdle(cases: readonly Case[]): Promise<Readonly<Record<string, number>>> {
  const servers = [...new Set(cases.map(({ server }) => server))]
  const before = servers.map(({ pid }) => readProcessCpu(pid))
  await sleep(IDLE_SECONDS * 1000)
  const used = servers.map(({ name, pid }, at) => {
    const micros = cpuBetween(before[at] as ProcessCpu, readProcessCpu(pid))
    return [name, Math.round(micros / IDLE_SECONDS)] as const
  })
  return Object.fromEntries(used)
}

function machine(loadBefore: readonly number[]) {
  const version = (name: string): string =>
    (JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')) as { version: string }).version
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const packages = ['express', '@x402/express', '@x402/core', '@x402/evm', 'viem']
  return {
    at: new Date().toISOString(),
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    tollgate: own.version,
    commit: commit(),
    ...Object.fromEntries(packages.map((name) => [name, version(name)])),
    loadBefore,
    loadAfter: loadavg(),
  }
}

/** The commit that was measured; null outside a checkout. */
function commit(): string | null {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim()
  } catch {
    return null
  }
}

function table(figures: readonly Figures[]): string {
  const times = (value: number | null): string => (value === null ? '' : value.toFixed(2))
  const rows = figures.map(({ name, median, lowest, highest, loop, timesPlain, timesX402, requests }) => [
    name,
    median.toFixed(0),
    `${lowest.toFixed(0)}–${highest.toFixed(0)}`,
    loop.toFixed(0),
    times(timesPlain),
    times(timesX402),
    String(requests),
  ])
  return textTable([['case', 'µs CPU', 'lowest–highest', 'loop', '× plain', '× @x402', 'requests'], ...rows])
}

function budgetTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ name, of, to, bar, times, microsAbove, meetsBar, recorded, limit, isWithinLimit }) => [
    `${name} (${of} / ${to})`,
    'times' in bar ? times.toFixed(2) : `${times.toFixed(2)}, ${microsAbove.toFixed(0)} µs above`,
    'times' in bar ? `≤ ${bar.times}` : `≤ ${bar.microsAbove} µs above`,
    meetsBar ? 'met' : 'NOT MET',
    recorded === null ? '' : recorded.toFixed(2),
    limit === null ? '' : `${isWithinLimit ? '' : 'ABOVE '}${limit.toFixed(2)}`,
  ])
  return textTable([['budget', 'measured', 'bar', '', 'recorded', 'limit'], ...rows])
}

const { values } = readOptions({
  rounds: number('N', 'rounds per case', 3, 1),
  seconds: number('S', 'seconds per case and round', 2, 0.1),
  only: texts('NAME', 'only cases whose name, or the part after a colon, begins with NAME'),
  check: flag(
    `measure only the cases of budget.json, and exit with 1 if a ratio is more than ${SLACK} times the one recorded there`,
  ),
  record: flag('record the measured ratios in budget.json'),
  json: flag('print everything as JSON, with facts about the machine'),
})
const { rounds, seconds } = values
const loadBefore = loadavg()
const servers = new Servers()
const lines = JSON.parse(readFileSync(BUDGET, 'utf8')) as readonly BudgetLine[]
const budgeted = values.check ? lines.flatMap(({ of, to }) => [of, to]) : []
const cases = await openCases(servers, values.only.length > 0 ? values.only : budgeted)
const all = await warmUp(cases)
await measureRounds(all, rounds, seconds)
if (values.check) await recheck(all, lines, seconds)
const figures = figuresOf(all)
const idle = await measureIdle(cases)
const verdicts = judgeAll(lines, all)
if (values.json) say(JSON.stringify({ machine: machine(loadBefore), figures, budget: verdicts, idle }, null, 2))
else {
  const facts = Object.entries(machine(loadBefore)).map(([name, value]) => `${name} ${String(value)}`)
  const idles = Object.entries(idle).map(([name, micros]) => `${name} ${micros}`)
  say(
    [facts.join(', '), table(figures), budgetTable(verdicts), `idle, µs CPU per second: ${idles.join(', ')}`].join(
      '\n\n',
    ),
  )
}
if (values.record) {
  const text = JSON.stringify(record(lines, verdicts))
  writeFileSync(BUDGET, await format(text, { parser: 'json', printWidth: 120 }))
}
const above = verdicts.filter(({ isWithinLimit }) => !isWithinLimit).map(({ name }) => name)
if (values.check && above.length > 0) {
  process.stderr.write(`More than ${SLACK} times what was recorded: ${above.join(', ')}\n`)
  process.exitCode = 1
}
