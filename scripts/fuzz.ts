/**
 * `npm run fuzz`: feeds every parser with inputs that nobody sent, guided by the branches they take. Exits with 1 if an
 * input ends in anything but a result or a refusal, takes more than 100 ms, or if the heap grows.
 */
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PROJECT_ROOT } from '../gateway/config/project-root.ts'
import { readFlags, readNumber } from './command-line.ts'
import { fuzz, type TargetReport } from './fuzz/run.ts'
import type { FuzzTarget } from './fuzz/target.ts'

const USAGE = `Usage: npm run fuzz -- [--cases N] [--seconds S] [--target NAME]... [--seed N]

Keeps new inputs in test/fuzz/corpus, which npm test reads. Exits with 1 after a finding.

  --cases N      cases of all targets together (1000000)
  --seconds S    stop after this time, shared by the targets (3600)
  --target NAME  run only this target; may be repeated
  --seed N       repeat the choices of an earlier run
  --module FILE  run the TARGETS that another module exports
  --corpus DIR   keep inputs there`

const { values } = readFlags(USAGE, {
  options: {
    cases: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '3600' },
    target: { type: 'string', multiple: true },
    seed: { type: 'string' },
    module: { type: 'string', default: join(PROJECT_ROOT, 'test', 'fuzz', 'targets.ts') },
    corpus: { type: 'string', default: join(PROJECT_ROOT, 'test', 'fuzz', 'corpus') },
  },
})
const [module, corpus] = [resolve(values.module), resolve(values.corpus)]
const { TARGETS } = (await import(pathToFileURL(module).href)) as { readonly TARGETS: readonly FuzzTarget[] }
const names = TARGETS.map(({ name }) => name)
const unknown = values.target?.filter((name) => !names.includes(name)) ?? []
if (unknown.length > 0) {
  process.stderr.write(`There is no target ${unknown.join(' or ')}. Targets: ${names.join(', ')}\n`)
  process.exit(2)
}
const cases = readNumber('--cases', values.cases, 1)
const seconds = readNumber('--seconds', values.seconds, 1)
const seed = values.seed === undefined ? Date.now() % 1e9 : Math.trunc(readNumber('--seed', values.seed))

const say = (line: string): boolean => process.stdout.write(`${line}\n`)
const columns = (cells: readonly (string | number)[]): string =>
  cells.map((cell, at) => (at === 0 ? String(cell).padEnd(20) : String(cell).padStart(11))).join('')
const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)

function line({
  target,
  cases,
  slowestMs,
  branches,
  newBranches,
  heapBefore,
  heapAfter,
  ...rest
}: TargetReport): string {
  const heap = [megabytes(heapBefore), megabytes(heapAfter)]
  const figures = [slowestMs.toFixed(1), branches, newBranches, ...heap, rest.seconds.toFixed(0), rest.findings.length]
  return columns([target, cases, ...figures])
}

say(`seed ${seed}`)
say(columns(['target', 'cases', 'slowest ms', 'branches', 'new', 'heap MB', 'after MB', 'seconds', 'findings']))
const reports = await fuzz({ module, targets: values.target ?? names, corpus, cases, seconds, seed }, (report) => {
  say(line(report))
  for (const { kind, message, file } of report.findings) say(`  ${kind}: ${message}\n  kept in ${file}`)
})
const total = reports.reduce((sum, report) => sum + report.cases, 0)
const found = reports.reduce((sum, { findings }) => sum + findings.length, 0)
const slowest = Math.max(...reports.map(({ slowestMs }) => slowestMs))
say(`${total} cases, slowest ${slowest.toFixed(1)} ms, ${found} findings`)
process.exitCode = found === 0 ? 0 : 1
