/**
 * Precision and recall of the entity tagger on texts labelled by hand. The project holds only ids and labels; the texts
 * come from a folder of recordings.
 */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { recogniseEntities } from '../../../../plugins/potus/entities/entity-recognition.ts'
import { UNSCORED } from '../../../../plugins/potus/entities/gazetteer.ts'
import { fullText } from '../../../../plugins/potus/entities/relevance.ts'
import { readRecordings } from '../../../../plugins/potus/replay/recordings.ts'
import { parseBody } from '../../../../plugins/potus/sources/parsers.ts'
import { readSources, type Source } from '../../../../plugins/potus/sources/source.ts'

export interface Score {
  readonly texts: number
  /** Entities that the tagger found. */
  readonly found: number
  /** Entities that the labels name. */
  readonly labelled: number
  /** Entities found that are also labelled. */
  readonly correct: number
  /** correct / found */
  readonly precision: number
  /** correct / labelled */
  readonly recall: number
  /** One line for each text with differences: its key, surplus entities after "+", missed ones after "-". */
  readonly differences: readonly string[]
}

/** The sets in the order they were labelled. The note in each file has its first result. */
export const LABELLED = ['entities', 'entities-later', 'entities-last', 'entities-wide', 'entities-unseen'] as const
const LABELS = resolve(import.meta.dirname, '../../../fixtures/potus')

/** The recorded texts as the tagger receives them, by source and by the source's own key. */
export type Texts = ReadonlyMap<string, ReadonlyMap<string, string>>

/** Reads the texts from a folder of recorded payloads. If a text changed, the longest version counts. */
export async function recordedTexts(folder: string): Promise<Texts> {
  const sources = new Map(readSources().map((source) => [source.id, source]))
  const texts = new Map<string, Map<string, string>>()
  for (const { source: id, item, body } of await readRecordings(folder, sources)) {
    const known = texts.get(id) ?? new Map<string, string>()
    texts.set(id, known)
    const { items } = item ? { items: [item] } : await parseBody(sources.get(id) as Source, body as Buffer, Infinity)
    for (const one of items) {
      const text = fullText(one)
      if (text.length > (known.get(one.key)?.length ?? -1)) known.set(one.key, text)
    }
  }
  return texts
}

/**
 * Compares the entities that the tagger finds with the labels of one set. A label that begins with "?" is optional: two
 * readers may differ on it (the department in an office's title), so it counts neither as missed nor as surplus. Throws a
 * RangeError if the recordings lack a labelled text.
 */
export function scoreEntities(recorded: Texts, set: (typeof LABELLED)[number]): Score {
  const { note: _, ...sets } = JSON.parse(readFileSync(join(LABELS, `${set}.json`), 'utf8')) as Record<
    string,
    Readonly<Record<string, readonly string[]>>
  >
  let [correct, found, labelled, texts] = [0, 0, 0, 0]
  const differences: string[] = []
  for (const [source, labelsOf] of Object.entries(sets))
    for (const [key, labels] of Object.entries(labelsOf)) {
      const text = recorded.get(source)?.get(key)
      if (text === undefined) throw new RangeError(`The recordings of ${source} have no text ${key}.`)
      const wanted = labels.filter((label) => !label.startsWith('?'))
      const recognised = recogniseEntities(text).map(({ id }) => id)
      const scored = recognised.filter((id) => !UNSCORED.has(id) && !labels.includes(`?${id}`))
      texts += 1
      found += scored.length
      labelled += wanted.length
      correct += scored.filter((id) => wanted.includes(id)).length
      const surplus = scored.filter((id) => !wanted.includes(id))
      const missed = wanted.filter((id) => !recognised.includes(id))
      if (surplus.length + missed.length > 0) differences.push(`${key} +${surplus.join(',')} -${missed.join(',')}`)
    }
  return { texts, found, labelled, correct, precision: correct / found, recall: correct / labelled, differences }
}
