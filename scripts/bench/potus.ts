/**
 * `npm run bench:potus`: measures the news feed. It replays recorded polls, scores the entity tagger on labelled texts, and
 * times pages on stores of three sizes.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openDatabase } from '../../gateway/stores/database.ts'
import { migrate } from '../../gateway/stores/migrations.ts'
import { createWriter } from '../../plugins/potus/ingest/event-writer.ts'
import { readRecordings } from '../../plugins/potus/replay/recordings.ts'
import { playEntries } from '../../plugins/potus/replay/replay-feed.ts'
import { readSources } from '../../plugins/potus/sources/source.ts'
import { migrations } from '../../plugins/potus/store/tables.ts'
import { readFlags } from '../command-line.ts'
import { LABELLED, recordedTexts, scoreEntities } from './potus/entity-scores.ts'
import { pageTimings, ROUNDS, SIZES } from './potus/page-timings.ts'

interface Table {
  readonly caption: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | number)[])[]
}

const root = resolve(import.meta.dirname, '../..')
const USAGE = `Usage: npm run bench:potus [-- --write] [FOLDER]

  FOLDER   recorded payloads (default ../shared/data/potus); without them, only pages are measured
  --write  save the figures in plugins/potus/data/potus-measurements.json, where the methodology page reads them`
const { values, positionals } = readFlags(USAGE, {
  options: { write: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const folder = resolve(positionals[0] ?? join(root, '../shared/data/potus'))

/** The rules were made on recordings before this day. Later recordings test them. */
const UNTIL = Date.UTC(2026, 2, 15)
const SET = ['wh.briefings', 'truth.archive', 'truth.mirror']
const FROM = Date.UTC(2025, 10, 1)

type Figures = Readonly<
  Record<'polls' | 'skipped' | 'items' | 'fresh' | 'revised' | 'held' | 'repeated' | 'joined' | 'seconds', number>
>

/** Replays the recorded payloads in `folder` into an empty store and counts what happened to their items. */
async function replayFigures(folder: string): Promise<Figures> {
  const db = openDatabase({ file: ':memory:' })
  await migrate(db, 'potus', migrations)
  const sources = new Map(readSources().map((source) => [source.id, source]))
  const writer = createWriter(
    db,
    () => 0,
    (source) => sources.get(source)?.publisher ?? source,
  )
  const all = await readRecordings(folder, sources)
  const entries = all.filter(({ source, at }) => SET.includes(source) && at >= FROM && at < UNTIL)
  const sum = { polls: 0, skipped: 0, items: 0, fresh: 0, revised: 0, held: 0, repeated: 0, joined: 0 }
  const begun = performance.now()
  for (const entry of entries) {
    const written = await playEntries(writer, sources, [entry])
    if (entry.body) sum.polls += 1
    if (written.outcome === 'unchanged') sum.skipped += 1
    for (const name of ['items', 'fresh', 'revised', 'held', 'repeated', 'joined'] as const) sum[name] += written[name]
  }
  const seconds = (performance.now() - begun) / 1000
  await db.destroy()
  return { ...sum, seconds }
}

async function replayTable(): Promise<Table> {
  const { polls, skipped, items, fresh, revised, held, repeated, joined, seconds } = await replayFigures(folder)
  return {
    caption: 'Polls recorded from 2025-11-28 to 2026-03-14, replayed through the code of the live feed',
    columns: ['figure', 'measured'],
    rows: [
      ['polls', polls],
      ['skipped because the body had not changed', skipped],
      ['items read', items],
      ['new events', fresh],
      ['revisions kept', revised],
      ['collapsed texts held back', held],
      ['repeats', repeated],
      ['events that joined a cluster', joined],
      ['milliseconds per item, with entities', ((1e3 * seconds) / items).toFixed(1)],
    ],
  }
}

async function entityTable(): Promise<Table> {
  const texts = await recordedTexts(folder)
  const rows = LABELLED.flatMap((set) => {
    const { texts: count, found, labelled, correct, precision, recall, differences } = scoreEntities(texts, set)
    for (const line of differences) process.stdout.write(`  ${line}\n`)
    const of = `${count} texts of ${set}`
    return [
      [`precision on ${of} (${correct} of ${found} found)`, precision.toFixed(3), '≥ 0.95'],
      [`recall on ${of} (${correct} of ${labelled} labelled)`, recall.toFixed(3), '≥ 0.70'],
    ]
  })
  return {
    caption: 'Entities found in posts and titles that one person labelled',
    columns: ['figure', 'measured', 'limit'],
    rows,
  }
}

async function pageTable(): Promise<Table> {
  const timings = await pageTimings(SIZES)
  return {
    caption: `Median milliseconds per page over ${ROUNDS} rounds, by number of events in the store. The ratio compares the quickest tenth of the rounds.`,
    columns: ['page', ...SIZES.map((size) => size.toLocaleString('en')), 'ratio (≤ 1.3)'],
    rows: timings.map(({ name, medians, ratio }) => [name, ...medians.map((ms) => ms.toFixed(1)), ratio.toFixed(2)]),
  }
}

function textOf({ caption, columns, rows }: Table): string {
  const lines = [columns, ...rows].map((row) =>
    row
      .map((cell, at) => String(cell).padEnd(at === 0 ? 44 : 12))
      .join(' ')
      .trimEnd(),
  )
  return `${caption}\n${lines.map((line) => `  ${line}`).join('\n')}\n\n`
}

const tables: Table[] = existsSync(folder) ? [await replayTable(), await entityTable()] : []
if (tables.length === 0) process.stdout.write(`${folder} has no recorded payloads, so only pages are measured.\n`)
tables.push(await pageTable())
process.stdout.write(tables.map(textOf).join(''))
if (values.write && tables.length === 3)
  writeFileSync(join(root, 'plugins/potus/data/potus-measurements.json'), `${JSON.stringify(tables, null, 2)}\n`)
