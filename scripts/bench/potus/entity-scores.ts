/** Precision and recall of entities on texts that were labelled by hand: ids and labels only, the texts stay where they are. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { recogniseEntities } from '../../../plugins/potus/entities/entity-recognition.ts'
import { UNSCORED } from '../../../plugins/potus/entities/gazetteer.ts'
import { fullText } from '../../../plugins/potus/entities/relevance.ts'
import { readRecordings } from '../../../plugins/potus/replay/recordings.ts'
import { parseBody } from '../../../plugins/potus/sources/parsers.ts'
import { readSources, type Source } from '../../../plugins/potus/sources/source.ts'

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
export const LABELLED = ['entities', 'entities-later', 'entities-last', 'entities-wide', 'entities-unseen'] as const
const LABELS = resolve(import.meta.dirname, '../../../test/fixtures/potus')

/** The recorded texts as the tagger gets them: by source, then by the source's own key. */
export type Texts = ReadonlyMap<string, ReadonlyMap<string, string>>

/** `folder` holds the recorded payloads of the feed. Of a text that changed the longest version counts. */
export async function recordedTexts(folder: string): Promise<Texts> {
  const sources = new Map(readSources().map((source) => [source.id, source]))
  const texts = new Map<string, Map<string, string>>()
  for (const { source: id, item, body } of await readRecordings(folder, sources)) {
    const known = texts.get(id) ?? new Map<string, string>()
    texts.set(id, known)
    for (const one of item ? [item] : parseBody(sources.get(id) as Source, body as Buffer, Infinity).items) {
      const words = fullText(one)
      if (words.length > (known.get(one.key)?.length ?? -1)) known.set(one.key, words)
    }
  }
  return texts
}

/**
 * Holds what is said of the labelled texts against the labels. One that begins with "?" is a name on which two readers
 * may differ (the department in an office's title): it is neither asked for nor held against the tagger.
 */
export function scoreEntities(recorded: Texts, set: (typeof LABELLED)[number]): Score {
  const { note: _, ...sets } = JSON.parse(readFileSync(join(LABELS, `${set}.json`), 'utf8')) as Record<
    string,
    Readonly<Record<string, readonly string[]>>
  >
  let [right, said, meant, texts] = [0, 0, 0, 0]
  const wrong: string[] = []
  for (const [source, labels] of Object.entries(sets))
    for (const [key, labelled] of Object.entries(labels)) {
      const text = recorded.get(source)?.get(key)
      if (text === undefined) throw new RangeError(`no recorded text ${key} of ${source}`)
      const wanted = labelled.filter((label) => !label.startsWith('?'))
      const found = recogniseEntities(text).map(({ id }) => id)
      const scored = found.filter((id) => !UNSCORED.has(id) && !labelled.includes(`?${id}`))
      texts += 1
      said += scored.length
      meant += wanted.length
      right += scored.filter((id) => wanted.includes(id)).length
      const surplus = scored.filter((id) => !wanted.includes(id))
      const missed = wanted.filter((id) => !found.includes(id))
      if (surplus.length + missed.length > 0) wrong.push(`${key} +${surplus.join(',')} -${missed.join(',')}`)
    }
  return { texts, said, meant, right, precision: right / said, recall: right / meant, wrong }
}
