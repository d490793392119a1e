/**
 * `npm run lab -- fuzz-ledgers`: writes sets of trades in every format and dress and compares the audit of each file with what the
 * trades are worth. Then changes a column of as many files. Exits with 1 if a figure differs, a column is not named, or too
 * many files are refused.
 */
import { runCases, runChangedCases, smallestFile } from '../plugins/audit/ledgers/run-cases.ts'
import { FORMATS } from '../plugins/audit/ledgers/ledger-case.ts'
import { number, readOptions, refuse, say, seed as seedOption, texts } from './experiment.ts'

const MOST_REFUSED = 0.05
const { cases, seed, format, show } = readOptions({
  cases: number('N', 'number of files, and of files with a changed column', 10_000, 1),
  seed: seedOption,
  format: texts('NAME', 'write only formats whose name contains this'),
  show: texts('TEXT', 'print the smallest file of faults whose name contains this'),
}).values
const formats = FORMATS.filter(({ name }) => format.length === 0 || format.some((part) => name.includes(part)))
if (formats.length === 0) refuse(`No format has such a name. Formats: ${FORMATS.map(({ name }) => name).join(', ')}`)

const onProgress = (done: number, faulty: number): void => {
  if (done % 1_000 === 0 || done === cases) process.stderr.write(`${done} of ${cases} files, ${faulty} with faults\n`)
}
say(`seed ${seed}`)
const began = performance.now()
const figures = await runCases({ formats, cases, seed, onProgress })
const faults = [...figures.faults.values()].sort((one, other) => other.count - one.count)
for (const fault of faults) {
  const name = `${fault.format}: ${fault.code}`
  say(`${String(fault.count).padStart(6)}  ${name}`)
  if (show.some((part) => name.includes(part))) say((await smallestFile(fault, seed)) ?? '        no small file found')
}
const refused = [...figures.ambiguous.values()].reduce((sum, count) => sum + count, 0)
for (const [code, count] of figures.ambiguous) say(`${String(count).padStart(6)}  refused as ambiguous: ${code}`)
const silent = await runChangedCases({ formats, cases, seed })
for (const text of silent.slice(0, 20)) say(text)
const seconds = ((performance.now() - began) / 1000).toFixed(0)
say(`${figures.cases} files, ${faults.length} kinds of faults, ${refused} refused, ${seconds} s`)
say(`${cases} files with a changed column, ${silent.length} read in silence`)
process.exitCode = faults.length + silent.length === 0 && refused <= MOST_REFUSED * cases ? 0 : 1
