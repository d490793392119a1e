/** The recorded polls and posts once through parser, revision rules and clusters: what came out, and how fast. */
import { openDatabase } from '../../../gateway/stores/database.ts'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { createWriter } from '../../../plugins/potus/ingest/event-writer.ts'
import { readRecordings } from '../../../plugins/potus/replay/recordings.ts'
import { play } from '../../../plugins/potus/replay/replay-feed.ts'
import { readSources } from '../../../plugins/potus/sources/source.ts'
import { migrations } from '../../../plugins/potus/store/tables.ts'

/** The set on which the rules were made; later recordings are for trying them. */
const UNTIL = Date.UTC(2026, 2, 15)
const SET = ['wh.briefings', 'truth.archive', 'truth.mirror']
const FROM = Date.UTC(2025, 10, 1)

export type Figures = Readonly<
  Record<'polls' | 'skipped' | 'items' | 'fresh' | 'revised' | 'held' | 'repeated' | 'joined' | 'seconds', number>
>

/** `folder` holds the recorded payloads of the feed. */
export async function replayFigures(folder: string): Promise<Figures> {
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
    const written = await play(writer, sources, [entry])
    if (entry.body) sum.polls += 1
    if (written.outcome === 'unchanged') sum.skipped += 1
    for (const name of ['items', 'fresh', 'revised', 'held', 'repeated', 'joined'] as const) sum[name] += written[name]
  }
  const seconds = (performance.now() - begun) / 1000
  await db.destroy()
  return { ...sum, seconds }
}
