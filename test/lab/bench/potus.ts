/**
 * `npm run lab -- potus`: measures the news feed. It replays recorded polls, scores the entity tagger on labelled texts, and
 * times pages on stores of three sizes.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { createWriter } from '../../../plugins/potus/ingest/event-writer.ts'
import { readRecordings } from '../../../plugins/potus/replay/recordings.ts'
import { playEntries } from '../../../plugins/potus/replay/replay-feed.ts'
import { readSources } from '../../../plugins/potus/sources/source.ts'
import { migrations } from '../../../plugins/potus/store/tables.ts'
import type { FoundClaim } from '../../support/measure.ts'
import { saveFigures, SAVING } from '../claim.ts'
import { readOptions, root, say, sayTable } from '../experiment.ts'
import { LABELLED, recordedTexts, type Score, scoreEntities } from '../../plugins/potus/entities/entity-scores.ts'
import { pageTimings, ROUNDS, SIZES } from './potus/page-timings.ts'

interface Table {
  readonly caption: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | number)[])[]
}

const { values, words } = readOptions(
  SAVING,
  '[FOLDER]',
  'FOLDER: recorded payloads (default ../shared/data/potus); without them, only pages are measured',
)
const folder = resolve(words[0] ?? join(root, '../shared/data/potus'))

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

type Scores = readonly { readonly set: (typeof LABELLED)[number]; readonly score: Score }[]

function entityTable(scores: Scores): Table {
  const rows = scores.flatMap(({ set, score }) => {
    const { texts: count, found, labelled, correct, precision, recall, differences } = score
    for (const line of differences) say(`  ${line}`)
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

/** What is claimed of the entities of all sets. */
function entityClaim(scores: Scores, times: readonly number[]): FoundClaim {
  const of = (name: 'precision' | 'recall'): number[] => scores.map(({ score }) => score[name])
  const span = (values: readonly number[]): string =>
    [Math.min(...values), Math.max(...values)].map((share) => (100 * share).toFixed(1)).join(' to ')
  return {
    claimed: 'Entities of a text: at least 95% of those named are right, and 70% of those there are named',
    measured: `${span(of('precision'))}% right, ${span(of('recall'))}% named`,
    met: of('precision').every((share) => share >= 0.95) && of('recall').every((share) => share >= 0.7),
    on: `${scores.length} sets of texts, labelled by one person, on which the rules were refined`,
    start: new Date(Math.min(...times)).toISOString(),
    end: new Date(Math.max(...times)).toISOString(),
    cases: scores.reduce((sum, { score }) => sum + score.labelled, 0),
    data_mode: 'replay',
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

const hasRecordings = existsSync(folder)
const texts = hasRecordings ? await recordedTexts(folder) : new Map()
const scores: Scores = hasRecordings ? LABELLED.map((set) => ({ set, score: scoreEntities(texts, set) })) : []
const tables: Table[] = hasRecordings ? [await replayTable(), entityTable(scores)] : []
if (tables.length === 0) say(`${folder} has no recorded payloads, so only pages are measured.`)
for (const { caption, columns, rows } of [...tables, await pageTable()]) {
  say(`\n${caption}`)
  sayTable([columns, ...rows])
}
// How long pages take depends on the machine, so the methodology leaves it out.
if (values.write && hasRecordings) {
  const recorded = await readRecordings(folder, new Map(readSources().map((source) => [source.id, source])))
  const claims = [
    entityClaim(
      scores,
      recorded.map(({ at }) => at),
    ),
  ]
  await saveFigures('plugins/potus/data/potus-measurements.json', { claims, tables }, values.into)
}
