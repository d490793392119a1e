/**
 * The figures of the feed: recorded polls replayed, entities on labelled texts, and pages at three sizes of the store.
 * `node --import tsx/esm scripts/bench/potus.ts [--write] [folder of recorded payloads]`; --write keeps them in
 * plugins/potus/data/measured.json, where the methodology page reads them.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { openDatabase } from '../../gateway/stores/database.ts'
import { migrate } from '../../gateway/stores/migrations.ts'
import { createWriter } from '../../plugins/potus/ingest/event-writer.ts'
import { readRecordings } from '../../plugins/potus/replay/recordings.ts'
import { playEntries } from '../../plugins/potus/replay/replay-feed.ts'
import { readSources } from '../../plugins/potus/sources/source.ts'
import { migrations } from '../../plugins/potus/store/tables.ts'
import { LABELLED, recordedTexts, scoreEntities } from './potus/entity-scores.ts'
import { pageTimings, ROUNDS, SIZES } from './potus/page-timings.ts'

interface Table {
  readonly caption: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | number)[])[]
}

const root = resolve(import.meta.dirname, '../..')
const { values, positionals } = parseArgs({
  options: { write: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const folder = resolve(positionals[0] ?? join(root, '../shared/data/potus'))

/** The set on which the rules were made; later recordings are for trying them. */
const UNTIL = Date.UTC(2026, 2, 15)
const SET = ['wh.briefings', 'truth.archive', 'truth.mirror']
const FROM = Date.UTC(2025, 10, 1)

type Figures = Readonly<
  Record<'polls' | 'skipped' | 'items' | 'fresh' | 'revised' | 'held' | 'repeated' | 'joined' | 'seconds', number>
>

/** `folder` holds the recorded payloads of the feed. */
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
  const set = all.filter(({ source, at }) => SET.includes(source) && at >= FROM && at < UNTIL)
  const sum = { polls: 0, skipped: 0, items: 0, fresh: 0, revised: 0, held: 0, repeated: 0, joined: 0 }
  const begun = performance.now()
  for (const entry of set) {
    const written = await playEntries(writer, sources, [entry])
    if (entry.body) sum.polls += 1
    if (written.outcome === 'unchanged') sum.skipped += 1
    for (const name of ['items', 'fresh', 'revised', 'held', 'repeated', 'joined'] as const) sum[name] += written[name]
  }
  const seconds = (performance.now() - begun) / 1000
  await db.destroy()
  return { ...sum, seconds }
}

async function replayed(): Promise<Table> {
  const { polls, skipped, items, fresh, revised, held, repeated, joined, seconds } = await replayFigures(folder)
  return {
    caption: 'Recorded polls of 2025-11-28 to 2026-03-14, replayed through the same code',
    columns: ['figure', 'measured'],
    rows: [
      ['polls', polls],
      ['skipped because the body was the same', skipped],
      ['items read', items],
      ['new events', fresh],
      ['revisions kept', revised],
      ['collapsed texts held back', held],
      ['repeats', repeated],
      ['events that joined a cluster', joined],
      ['milliseconds an item, entities included', Math.round((1e4 * seconds) / items) / 10],
    ],
  }
}

async function labelled(): Promise<Table> {
  const texts = await recordedTexts(folder)
  const rows = LABELLED.flatMap((set) => {
    const { texts: count, said, meant, right, precision, recall, wrong } = scoreEntities(texts, set)
    for (const line of wrong) process.stdout.write(`  ${line}\n`)
    const of = `${count} texts of ${set}`
    return [
      [`precision on ${of} (${right} of ${said} said)`, precision.toFixed(3), '≥ 0.95'],
      [`recall on ${of} (${right} of ${meant} meant)`, recall.toFixed(3), '≥ 0.70'],
    ]
  })
  return {
    caption: 'Entities on labelled posts and titles; one labeller',
    columns: ['figure', 'measured', 'bar'],
    rows,
  }
}

async function paged(): Promise<Table> {
  const timings = await pageTimings(SIZES)
  return {
    caption: `Median milliseconds of a page in ${ROUNDS} rounds, by events in the store; the ratio is of the quickest tenth`,
    columns: ['page', ...SIZES.map((size) => size.toLocaleString('en')), 'ratio (≤ 1.3)'],
    rows: timings.map(({ name, medians, ratio }) => [name, ...medians.map((ms) => ms.toFixed(1)), ratio.toFixed(2)]),
  }
}

function shown({ caption, columns, rows }: Table): string {
  const lines = [columns, ...rows].map((row) =>
    row
      .map((cell, at) => String(cell).padEnd(at === 0 ? 44 : 12))
      .join(' ')
      .trimEnd(),
  )
  return `${caption}\n${lines.map((line) => `  ${line}`).join('\n')}\n\n`
}

const tables: Table[] = existsSync(folder) ? [await replayed(), await labelled()] : []
if (tables.length === 0) process.stdout.write(`No recorded payloads in ${folder}: only pages are measured.\n`)
tables.push(await paged())
process.stdout.write(tables.map(shown).join(''))
if (values.write && tables.length === 3)
  writeFileSync(join(root, 'plugins/potus/data/measured.json'), `${JSON.stringify(tables, null, 2)}\n`)
