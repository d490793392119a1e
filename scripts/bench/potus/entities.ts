/** Precision and recall of entities on texts that were labelled by hand: ids and labels only, the texts stay where they are. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { entitiesOf } from '../../../plugins/potus/entities/enrich.ts'
import { UNSCORED } from '../../../plugins/potus/entities/gazetteer.ts'
import { parsePosts, postRow } from '../../../plugins/potus/sources/truth.ts'

export interface Score {
  readonly texts: number
  /** Mentions found, labels set, and those that agree. */
  readonly said: number
  readonly meant: number
  readonly right: number
  readonly precision: number
  readonly recall: number
  /** What disagrees, text by text. */
  readonly wrong: readonly string[]
}

/** Sets in the order they were labelled. Each says in its note how it did when it was first tried. */
export const LABELLED = ['entities', 'entities-later', 'entities-last'] as const
const LABELS = resolve(import.meta.dirname, '../../../test/fixtures/potus')

/** `folder` holds the recorded payloads of the feed. */
export function scoreEntities(folder: string, set: (typeof LABELLED)[number]): Score {
  const { note: _, ...sets } = JSON.parse(readFileSync(join(LABELS, `${set}.json`), 'utf8')) as Record<
    string,
    Readonly<Record<string, readonly string[]>>
  >
  let [right, said, meant, texts] = [0, 0, 0, 0]
  const wrong: string[] = []
  for (const [file, labels] of Object.entries(sets)) {
    const words = textsOf(folder, file)
    for (const [id, wanted] of Object.entries(labels)) {
      const found = entitiesOf(words.get(id) ?? '').map((mention) => mention.id)
      const scored = found.filter((one) => !UNSCORED.has(one))
      texts += 1
      said += scored.length
      meant += wanted.length
      right += scored.filter((one) => wanted.includes(one)).length
      const surplus = scored.filter((one) => !wanted.includes(one))
      const missed = wanted.filter((one) => !found.includes(one))
      if (surplus.length + missed.length > 0) wrong.push(`${id} +${surplus.join(',')} -${missed.join(',')}`)
    }
  }
  return { texts, said, meant, right, precision: right / said, recall: right / meant, wrong }
}

function textsOf(folder: string, file: string): Map<string, string> {
  const content = readFileSync(
    join(folder, file.startsWith('executive') ? 'federalregister' : 'truthsocial', file),
    'utf8',
  )
  if (file.startsWith('truth_archive'))
    return new Map(parsePosts(Buffer.from(content)).map(({ key, text }) => [key, text]))
  if (file.endsWith('.json')) {
    const { orders } = JSON.parse(content) as { orders: { document_number: string; title: string }[] }
    return new Map(orders.map(({ document_number: id, title }) => [id, title]))
  }
  const rows = content
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, string>)
  return new Map(
    rows.map((row) => {
      const id = row['id'] ?? row['post_id'] ?? ''
      return [id, postRow({ ...row, id, created_at: row['created_at'] ?? row['timestamp_utc'] }).text]
    }),
  )
}
