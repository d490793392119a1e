/**
 * `npm run lab -- products`: measures the market products on the recorded data beside the checkout and compares each figure
 * with its limit. Exits with 1 if a figure misses its limit.
 */
import { measureAudit } from '../../plugins/audit/audit-figures.ts'
import { measureSimulations } from '../../plugins/audit/audit-simulations.ts'
import { measureBooks, measureCost, measureSchedules } from '../../plugins/cost/order-cost.ts'
import { measureRecordedRanges, measureSimulatedRanges } from '../../plugins/cost/range-coverage.ts'
import { measureDaily } from '../../plugins/qc/daily-bars.ts'
import type { Measure } from '../../support/measure.ts'
import { measureQuality } from '../../plugins/qc/bar-quality.ts'
import { isRecorded } from '../../support/recorded-data.ts'
import { measureSpeed } from './products/speed.ts'
import { measureSpreads } from './products/spreads.ts'
import { measureStatistics } from './products/published-figures.ts'
import { saveFigures, SAVING } from '../claim.ts'
import { flag, readOptions, refuse, say, sayTable, texts } from '../experiment.ts'

type Part = () => Measure[] | Promise<Measure[]>

const PARTS: Readonly<Record<string, Part>> = {
  statistics: measureStatistics,
  spreads: measureSpreads,
  books: measureBooks,
  cost: () => [...measureCost(), ...measureSchedules()],
  ranges: () => [...measureRecordedRanges(), ...measureSimulatedRanges()],
  quality: measureQuality,
  daily: measureDaily,
  audit: measureAudit,
  simulations: measureSimulations,
  speed: measureSpeed,
}

/** The files that the methodology of each product reads, with the parts that they contain. */
const KEPT = [
  { file: 'plugins/qc/quality-measurements.json', parts: ['bar quality', 'real daily bars'] },
  { file: 'plugins/cost/cost-measurements.json', parts: ['spreads', 'cost', 'ranges'] },
  { file: 'plugins/audit/audit-measurements.json', parts: ['backtest audit', 'simulated ledgers'] },
]

const { only, json, write, into } = readOptions({
  only: texts('PART', `only this part: ${Object.keys(PARTS).join(', ')}`),
  json: flag('print everything as JSON'),
  ...SAVING,
}).values

const unknown = only.filter((name) => !(name in PARTS))
if (unknown.length > 0) refuse(`There is no part ${unknown.join(' or ')}. Parts: ${Object.keys(PARTS).join(', ')}`)
if (!isRecorded) refuse('No recorded data found. Put them at ../shared/data, beside the checkout.')
const measures: Measure[] = []
for (const [name, part] of Object.entries(PARTS))
  if (only.length === 0 || only.includes(name)) measures.push(...(await part()))
const missed = measures.filter(({ pass }) => pass === false)
if (json) say(JSON.stringify({ ok: missed.length === 0, measures }, null, 2))
else {
  const verdictOf = (pass: boolean | null): string => (pass === null ? '' : pass ? 'pass' : 'FAIL')
  sayTable(
    measures.map(({ part, name, value, bar, pass }) => [part, name, value, bar, verdictOf(pass)]),
    [0, 1, 3, 4],
  )
  say(`\n${missed.length === 0 ? 'Every figure meets its limit.' : `${missed.length} figures miss their limits.`}`)
}
if (write) await keep()
process.exitCode = missed.length > 0 ? 1 : 0

/** Saves the figures. Skips a file if one of its parts was not measured. */
async function keep(): Promise<void> {
  for (const { file, parts } of KEPT) {
    const tables = parts.map((part) => ({
      caption: `Measured on ${part.startsWith('simulated') ? '' : 'recorded data: '}${part}`,
      columns: ['figure', 'measured', 'limit'],
      rows: measures.filter((measure) => measure.part === part).map(({ name, value, bar }) => [name, value, bar]),
    }))
    if (tables.some(({ rows }) => rows.length === 0)) continue
    const claims = measures.flatMap(({ part, claim }) => (claim && parts.includes(part) ? [claim] : []))
    await saveFigures(file, { claims, tables }, into)
  }
}
