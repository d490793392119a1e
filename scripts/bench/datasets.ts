/**
 * `npm run bench:x`: shows what the funding and directory products of /v1/x read from recorded data.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { READERS } from '../../plugins/directory/recorded-listings.ts'
import { aprOf } from '../../plugins/funding/rate-arithmetic.ts'
import { type History, intervalOf } from '../../plugins/funding/recorded-settlements.ts'
import { quarantine } from '../../plugins/funding/funding-rate.ts'
import { readFundingRecordings } from '../../plugins/funding/recorded-payloads.ts'
import type { Method } from '../../schemas/types.d.ts'
import { readFlags } from '../command-line.ts'

type Table = Required<Method>['tables'][number]

const root = resolve(import.meta.dirname, '../..')
const USAGE = `Usage: npm run bench:x [-- --write] [FOLDER]

  FOLDER   recorded data, in the layout of REPLAY_DIR (default ../shared/data)
  --write  save the tables in plugins/<name>/<name>-measurements.json, where the methodology page reads them`
const { values, positionals } = readFlags(USAGE, {
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
})
const folder = resolve(positionals[0] ?? join(root, '../shared/data'))

/** Formats a share as a percentage. Returns '' if the share is not a number, as when it divides by zero. */
const percent = (share: number): string => (Number.isFinite(share) ? `${(100 * share).toFixed(3)}%` : '')

/** Returns a table with one row per recorded answer: how many rates it has, and one of them as an annual rate. */
async function funding(): Promise<Table[]> {
  const { polls, settled } = await readFundingRecordings(folder)
  const rows = polls.map(({ venue, at, parsed }) => {
    const { rates, quarantined } = quarantine(parsed.rates)
    const one = rates.find(({ symbol }) => symbol === 'BTC') ?? rates[0]
    const time = new Date(at * 1000).toISOString().slice(0, 16)
    return [
      venue,
      time,
      rates.length,
      quarantined.length,
      parsed.untold.length,
      ...(one ? [one.instrument, one.rate, one.intervalHours] : ['', '', '']),
      percent(one ? aprOf(Number(one.rate), one.intervalHours) : NaN),
    ]
  })
  const columns = [
    'Venue',
    'Recorded (UTC)',
    'Rates',
    'Quarantined',
    'Not stated',
    'Example',
    'Rate',
    'Hours',
    'Annual rate',
  ]
  return [
    { caption: 'Rates read from recorded answers of the venues', columns, rows },
    ...(settled ? [intervals(settled)] : []),
  ]
}

/** Compares the interval estimated from past settlements with the gap that followed. */
function intervals(settled: History): Table {
  const rows = [...settled].map(([instrument, settlements]) => {
    const times = settlements.map(({ time }) => time)
    let estimates = 0
    let correct = 0
    for (let i = 3; i < times.length; i += 1) {
      const hours = intervalOf(times.slice(Math.max(0, i - 12), i))
      if (hours === null) continue
      estimates += 1
      if (Math.round((times[i]! - times[i - 1]!) / 3600) === hours) correct += 1
    }
    return [instrument, times.length, intervalOf(times) ?? '', estimates, percent(correct / estimates)]
  })
  const columns = ['Contract', 'Settlements', 'Interval now, hours', 'Estimates', 'Equal to the next gap']
  return { caption: 'Intervals of Binance contracts, estimated from earlier gaps', columns, rows }
}

/** Returns a table with one row per recorded listing: how many rows were kept, and why others were dropped. */
async function directory(): Promise<Table[]> {
  const rows: (string | number)[][] = []
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    for (const { pattern, read } of READERS) {
      if (!entry.isFile() || !pattern.test(entry.name)) continue
      const page = read(
        JSON.parse(await readFile(join(entry.parentPath, entry.name), 'utf8')),
        Date.UTC(2026, 10, 20) / 1000,
      )
      if (!page) continue
      const dropped = Object.entries(page.dropped).map(([reason, count]) => `${reason} ${count}`)
      const priced = page.listings.filter(({ prices }) => prices.length > 0).length
      const templates = page.listings.filter(({ isTemplate }) => isTemplate).length
      rows.push([entry.name, page.rows, page.listings.length, priced, templates, dropped.join(', ')])
    }
  rows.sort(([a], [b]) => String(a).localeCompare(String(b)))
  const columns = ['Recording', 'Rows', 'Listed', 'With a price', 'Templates', 'Dropped']
  return [{ caption: 'Services read from recorded listings', columns, rows }]
}

for (const [plugin, tables] of Object.entries({ funding: await funding(), directory: await directory() })) {
  for (const { caption, columns, rows } of tables) {
    process.stdout.write(`\n${caption}\n`)
    console.table(rows.map((row) => Object.fromEntries(row.map((cell, i) => [columns[i], cell]))))
  }
  if (!values.write) continue
  const file = join(root, 'plugins', plugin, `${plugin}-measurements.json`)
  await writeFile(file, await format(JSON.stringify(tables), { ...(await resolveConfig(file)), filepath: file }))
}
