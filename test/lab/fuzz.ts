/**
 * `npm run lab -- fuzz`: feeds every parser with inputs that nobody sent, guided by the branches they take. Exits with 1 if an
 * input ends in anything but a result or a refusal, takes more than 100 ms, or if the heap grows.
 */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { number, readOptions, refuse, root, say, seed as seedOption, text, texts } from './experiment.ts'
import { fuzz, type TargetReport } from './fuzz/run.ts'
import type { FuzzTarget } from '../fuzz/target.ts'

const { cases, seconds, target, seed, ...places } = readOptions({
  cases: number('N', 'cases of all targets together', 1_000_000, 1),
  seconds: number('S', 'stop after this time, shared by the targets', 3_600, 1),
  target: texts('NAME', 'run only this target'),
  seed: seedOption,
  module: text('FILE', 'run the TARGETS that another module exports', 'test/fuzz/targets.ts'),
  corpus: text('DIR', 'keep new inputs there, which npm test reads', 'test/fuzz/corpus'),
}).values
const [module, corpus] = [places.module, places.corpus].map((path) => resolve(root, path)) as [string, string]
const { TARGETS } = (await import(pathToFileURL(module).href)) as { readonly TARGETS: readonly FuzzTarget[] }
const names = TARGETS.map(({ name }) => name)
const unknown = target.filter((name) => !names.includes(name))
if (unknown.length > 0) refuse(`There is no target ${unknown.join(' or ')}. Targets: ${names.join(', ')}`)

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
const reports = await fuzz(
  { module, targets: target.length > 0 ? target : names, corpus, cases, seconds, seed },
  (report) => {
    say(line(report))
    for (const { kind, message, file } of report.findings) say(`  ${kind}: ${message}\n  kept in ${file}`)
  },
)
const total = reports.reduce((sum, report) => sum + report.cases, 0)
const found = reports.reduce((sum, { findings }) => sum + findings.length, 0)
const slowest = Math.max(...reports.map(({ slowestMs }) => slowestMs))
say(`${total} cases, slowest ${slowest.toFixed(1)} ms, ${found} findings`)
process.exitCode = found === 0 ? 0 : 1
