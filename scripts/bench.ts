/**
 * `npm run bench`: what a call costs. Measures the CPU that the server process uses per request, for every path of the
 * gateway, plain node:http, bare Express and `@x402/express`. Rounds take turns, so that other work on the machine
 * affects all cases; compare ratios, because microseconds depend on the machine. An answer with a wrong status ends the
 * run. Needs Linux.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { format } from 'prettier'
import { type BudgetLine, judge, record, SLACK, type Verdict } from './bench/calls/budget.ts'
import { type Case, openCases } from './bench/calls/cases.ts'
import { sendLoad } from './bench/calls/load.ts'
import { Servers } from './bench/calls/servers.ts'
import { cpuBetween, readProcessCpu } from './bench/cpu-time.ts'
import { readFlags } from './command-line.ts'

const USAGE = `Usage: npm run bench [-- OPTIONS]

  --rounds N      rounds per case (default 3)
  --seconds S     seconds per case and round (default 2)
  --only NAME     only cases whose name, or the part after a colon, begins with NAME; may be repeated
  --check         exit with 1 if a ratio is more than ${SLACK} times the one recorded in scripts/bench/budget.json
  --record        record the measured ratios in scripts/bench/budget.json
  --json          print everything as JSON, with facts about the machine`

const root = resolve(import.meta.dirname, '..')
const BUDGET = join(root, 'scripts/bench/budget.json')
const CONNECTIONS = 32
const WARM_UP_SECONDS = 3
/** What a server does after its answers, for instance noting their delivery, belongs to their cost. */
const AFTERWARDS_MS = 150
/** Payments that are signed for the first measurement of a case, per second. */
const FIRST_RATE = 1_000

interface Measured {
  readonly case: Case
  readonly micros: number[]
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
  readonly requests: number
  /** Times as much as the same answer from plain node:http, and as the same step of @x402/express. */
  readonly timesPlain: number | null
  readonly timesX402: number | null
}

async function measure(measured: Measured, seconds: number): Promise<number> {
  const { server, expected, prepare, name } = measured.case
  const next = prepare(Math.ceil(measured.rate * seconds * 1.3) + CONNECTIONS)
  const load = { port: server.port, connections: CONNECTIONS, seconds, expected, next }
  const before = readProcessCpu(server.pid)
  const began = performance.now()
  const requests = await sendLoad(load).catch((error: Error) => {
    throw new Error(`${name}: ${error.message}`)
  })
  measured.rate = (requests / (performance.now() - began)) * 1000
  await sleep(AFTERWARDS_MS)
  measured.requests += requests
  return cpuBetween(before, readProcessCpu(server.pid)) / requests
}

async function measureAll(cases: readonly Case[], rounds: number, seconds: number): Promise<readonly Figures[]> {
  const all = cases.map((one): Measured => ({ case: one, micros: [], requests: 0, rate: FIRST_RATE }))
  for (const measured of all) await measure(measured, WARM_UP_SECONDS)
  for (const measured of all) measured.requests = 0
  for (let round = 1; round <= rounds; round++) {
    process.stderr.write(`round ${round} of ${rounds}\n`)
    for (const measured of all) measured.micros.push(await measure(measured, seconds))
  }
  const medians = new Map(all.map(({ case: { name }, micros }) => [name, median(micros)]))
  const times = (name: string, other: string | null): number | null => {
    const [own, base] = [medians.get(name), medians.get(other ?? '')]
    return own === undefined || base === undefined ? null : own / base
  }
  return all.map(({ case: { name, plain, peer }, micros, requests }) => ({
    name,
    median: median(micros),
    lowest: Math.min(...micros),
    highest: Math.max(...micros),
    requests,
    timesPlain: times(name, plain),
    timesX402: times(name, peer),
  }))
}

function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((one, other) => one - other)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
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
  const rows = figures.map(({ name, median, lowest, highest, timesPlain, timesX402, requests }) => [
    name,
    median.toFixed(0),
    `${lowest.toFixed(0)}–${highest.toFixed(0)}`,
    times(timesPlain),
    times(timesX402),
    String(requests),
  ])
  return columns([['case', 'µs CPU', 'lowest–highest', '× plain', '× @x402', 'requests'], ...rows])
}

function budgetTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ name, of, to, bar, times, microsAbove, meetsBar, recorded, limit, isWithinLimit }) => [
    name,
    'times' in bar ? times.toFixed(2) : `${times.toFixed(2)}, ${microsAbove.toFixed(0)} µs above`,
    'times' in bar ? `≤ ${bar.times}` : `≤ ${bar.microsAbove} µs above`,
    meetsBar ? 'met' : 'NOT MET',
    recorded === null ? '' : recorded.toFixed(2),
    limit === null ? '' : `${isWithinLimit ? '' : 'ABOVE '}${limit.toFixed(2)}`,
    `${of} / ${to}`,
  ])
  return columns([['budget', 'measured', 'bar', '', 'recorded', 'limit', 'ratio of'], ...rows])
}

/** Pads the columns: the first and the last to the left, the others to the right. */
function columns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const pad = (cell: string, at: number): string =>
    at === 0 || (at === 6 && widths.length === 7) ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)
  return rows.map((row) => row.map(pad).join('  ').trimEnd()).join('\n')
}

const { values } = readFlags(USAGE, {
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', multiple: true, default: [] },
    check: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const loadBefore = loadavg()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
const servers = new Servers(folder)
try {
  const lines = JSON.parse(readFileSync(BUDGET, 'utf8')) as readonly BudgetLine[]
  const cases = await openCases(servers, folder, values.only)
  const figures = await measureAll(cases, Number(values.rounds), Number(values.seconds))
  const verdicts = judge(lines, new Map(figures.map(({ name, median }) => [name, median])))
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ machine: machine(loadBefore), figures, budget: verdicts }, null, 2)}\n`)
  } else {
    const facts = Object.entries(machine(loadBefore)).map(([name, value]) => `${name} ${String(value)}`)
    process.stdout.write(`${facts.join(', ')}\n\n${table(figures)}\n\n${budgetTable(verdicts)}\n`)
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
} finally {
  await servers.stop()
  rmSync(folder, { recursive: true, force: true })
}
