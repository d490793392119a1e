/**
 * `npm run lab -- datasets`: shows what the funding and directory products of /v1/x read from recorded data.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { READERS } from '../../../plugins/directory/recorded-listings.ts'
import { aprOf } from '../../../plugins/funding/rate-arithmetic.ts'
import { type History, intervalOf } from '../../../plugins/funding/recorded-settlements.ts'
import { quarantine } from '../../../plugins/funding/funding-rate.ts'
import { readFundingRecordings } from '../../../plugins/funding/recorded-payloads.ts'
import { formatSeconds } from '../../../plugins/lib/time/timestamps.ts'
import type { Method } from '../../../schemas/types.d.ts'
import type { FoundClaim } from '../../support/measure.ts'
import { saveFigures, SAVING } from '../claim.ts'
import { readOptions, root } from '../experiment.ts'

interface Figures {
  readonly claims: readonly FoundClaim[]
  readonly tables: Required<Method>['tables']
}

const { values, words } = readOptions(
  SAVING,
  '[FOLDER]',
  'FOLDER: recorded data, in the layout of REPLAY_DIR (default ../shared/data)',
)
const folder = resolve(words[0] ?? join(root, '../shared/data'))

/** Formats a share as a percentage. Returns '' if the share is not a number, as when it divides by zero. */
const percent = (share: number): string => (Number.isFinite(share) ? `${(100 * share).toFixed(3)}%` : '')

/** Returns a table with one row per recorded answer: how many rates it has, and one of them as an annual rate. */
async function funding(): Promise<Figures> {
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
  return {
    claims: settled ? [intervalClaim(settled)] : [],
    tables: [{ caption: 'Rates read from recorded answers of the venues', columns, rows }],
  }
}

/** Compares the interval estimated from past settlements with the gap that followed. */
function intervalClaim(settled: History): FoundClaim {
  let [estimates, correct, start, end] = [0, 0, Infinity, -Infinity]
  for (const settlements of settled.values()) {
    const times = settlements.map(({ time }) => time)
    start = Math.min(start, ...times)
    end = Math.max(end, ...times)
    for (let i = 3; i < times.length; i += 1) {
      const hours = intervalOf(times.slice(Math.max(0, i - 12), i))
      if (hours === null) continue
      estimates += 1
      if (Math.round((times[i]! - times[i - 1]!) / 3600) === hours) correct += 1
    }
  }
  return {
    claimed: 'The interval inferred from past settlements is that to the next, for 99% of them',
    measured: `${correct.toLocaleString('en')} of ${estimates.toLocaleString('en')}`,
    met: correct >= 0.99 * estimates,
    on: `Settlements of ${settled.size} Binance contracts`,
    start: formatSeconds(start),
    end: formatSeconds(end),
    cases: estimates,
    data_mode: 'replay',
  }
}

/** Returns a table with one row per recorded listing: how many rows were kept, and why others were dropped. */
async function directory(): Promise<Figures> {
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
  return { claims: [], tables: [{ caption: 'Services read from recorded listings', columns, rows }] }
}

for (const [plugin, { claims, tables }] of Object.entries({ funding: await funding(), directory: await directory() })) {
  for (const { caption, columns, rows } of tables) {
    process.stdout.write(`\n${caption}\n`)
    console.table(rows.map((row) => Object.fromEntries(row.map((cell, i) => [columns[i], cell]))))
  }
  const file = join('plugins', plugin, `${plugin}-measurements.json`)
  if (values.write) await saveFigures(file, { claims, tables }, values.into)
}
