/**
 * `npm run bench:products`: measures the market products on the recorded data beside the checkout and compares each figure
 * with its limit. Exits with 1 if a figure misses its limit.
 */
import { writeFileSync } from 'node:fs'
import { format } from 'prettier'
import { measureAudit } from './products/audit-figures.ts'
import { measureBooks, measureCost } from './products/order-cost.ts'
import { measureDaily } from './products/daily-bars.ts'
import type { Measure } from './products/measure.ts'
import { measureQuality } from './products/bar-quality.ts'
import { isRecorded } from './products/recorded-data.ts'
import { measureSpeed } from './products/speed.ts'
import { measureSpreads } from './products/spreads.ts'
import { measureStatistics } from './products/published-figures.ts'
import { readFlags } from '../command-line.ts'
import { textTable } from '../text-table.ts'

type Part = () => Measure[] | Promise<Measure[]>

const PARTS: Readonly<Record<string, Part>> = {
  statistics: measureStatistics,
  spreads: measureSpreads,
  books: measureBooks,
  cost: measureCost,
  quality: measureQuality,
  daily: measureDaily,
  audit: measureAudit,
  speed: measureSpeed,
}

/** The files that the methodology of each product reads, with the parts that they contain. */
const KEPT = [
  { file: '../../plugins/qc/quality-measurements.json', parts: ['bar quality', 'real daily bars'] },
  { file: '../../plugins/cost/cost-measurements.json', parts: ['spreads', 'books', 'cost'] },
  { file: '../../plugins/audit/audit-measurements.json', parts: ['backtest audit'] },
]

const USAGE = `Usage: npm run bench:products [-- OPTIONS]

  --only PART  only this part; may be repeated: ${Object.keys(PARTS).join(', ')}
  --json       print everything as JSON
  --write      save the figures that the methodology pages show`
const { values } = readFlags(USAGE, {
  options: {
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
  },
})

const unknown = values.only?.filter((name) => !(name in PARTS)) ?? []
if (unknown.length > 0) {
  process.stderr.write(`There is no part ${unknown.join(' or ')}.\n\n${USAGE}\n`)
  process.exit(2)
}
if (!isRecorded) {
  process.stderr.write('No recorded data found. Put them at ../shared/data, beside the checkout.\n')
  process.exit(2)
}
const measures: Measure[] = []
for (const [name, part] of Object.entries(PARTS)) {
  if (values.only && !values.only.includes(name)) continue
  measures.push(...(await part()))
}
const missed = measures.filter(({ pass }) => pass === false)
process.stdout.write(values.json ? `${JSON.stringify({ ok: missed.length === 0, measures }, null, 2)}\n` : table())
if (values.write) await keep()
process.exitCode = missed.length > 0 ? 1 : 0

function table(): string {
  const rows = measures.map(({ part, name, value, bar, pass }) => {
    const verdict = pass === null ? '' : pass ? 'pass' : 'FAIL'
    return [part, name, value, bar, verdict] as const
  })
  const summary = missed.length === 0 ? 'Every figure meets its limit.' : `${missed.length} figures miss their limits.`
  return `${[textTable(rows, [0, 1, 3, 4]), '', summary].join('\n')}\n`
}

/** Saves the figures. Skips a file if one of its parts was not measured. */
async function keep(): Promise<void> {
  for (const { file, parts } of KEPT) {
    const tables = parts.map((part) => ({
      caption: `Measured on recorded data: ${part}`,
      columns: ['figure', 'measured', 'limit'],
      rows: measures.filter((measure) => measure.part === part).map(({ name, value, bar }) => [name, value, bar]),
    }))
    if (tables.some(({ rows }) => rows.length === 0)) continue
    const text = await format(JSON.stringify(tables), { parser: 'json', printWidth: 120 })
    writeFileSync(new URL(file, import.meta.url), text)
  }
}
