/**
 * Who and what a text names: known names first, then names that tell by their form what they are, then a grammar's
 * guess at persons it does not know. Run once per revision, never in a request.
 */
import { type Entry, type EntityType, slugOf } from './facts.ts'
import { findNames, knownPerson, nameWords } from './gazetteer.ts'
import { guessPersons } from './guess.ts'
import { namedByForm } from './patterns.ts'

export interface Mention {
  readonly id: string
  readonly type: EntityType
  readonly name: string
  readonly count: number
  readonly confidence: number
  readonly method: 'gazetteer' | 'form' | 'grammar'
}

/** How often a mention found this way is right: as labelled texts showed, rounded down. */
const CONFIDENCE = { gazetteer: 0.98, form: 0.95, grammar: 0.9 } as const

interface Span {
  readonly start: number
  readonly end: number
}

/** Entities of a text, the most frequent first. */
export function entitiesOf(written: string): Mention[] {
  const text = unglued(written)
  const words = nameWords(text)
  const hits = findNames(words, text).map(({ entry, from, to }) => ({
    entry,
    start: words[from]!.start,
    end: words[to - 1]!.end,
    isOneWord: to - from === 1,
  }))
  const formed = namedByForm(text).filter((form) => !hits.some((hit) => hit.start <= form.start && form.end <= hit.end))
  const guesses = guessPersons(text).filter((guess) => !formed.some((form) => overlap(form, guess)))
  // A word inside a longer name is the family's, or the university's: Lisa Monaco, the University of Georgia.
  const known = hits.filter(
    (hit) =>
      !formed.some((form) => overlap(form, hit) && !(form.isOpen && hit.entry.type === 'place')) &&
      !(hit.isOneWord && guesses.some((guess) => overlap(guess, hit))),
  )
  const apart = guesses.filter((guess) => !known.some((hit) => overlap(hit, guess)))
  const found = new Map<string, { -readonly [Field in keyof Mention]: Mention[Field] }>()
  const count = (mention: Pick<Mention, 'id' | 'type' | 'name' | 'method'>): void => {
    const before = found.get(mention.id)
    if (before) before.count += 1
    else found.set(mention.id, { ...mention, count: 1, confidence: CONFIDENCE[mention.method] })
  }
  const countEntry = ({ id, type, name }: Entry): void => count({ id, type, name, method: 'gazetteer' })
  for (const { entry } of known) countEntry(entry)
  for (const { id, type, name } of formed) count({ id, type, name, method: 'form' })
  for (const { name } of apart) {
    const entry = knownPerson(name)
    if (entry) countEntry(entry)
    else count({ id: `person:${slugOf(name.replace(/ \p{Lu}\./gu, ''))}`, type: 'person', name, method: 'grammar' })
  }
  return [...found.values()].sort((a, b) => b.count - a.count || (a.id < b.id ? -1 : 1))
}

const overlap = (a: Span, b: Span): boolean => a.start < b.end && b.start < a.end

/** Letters in mathematical type are letters. A scraper that loses line ends glues a heading to the next, and a small word to a link's text. */
function unglued(text: string): string {
  return text
    .normalize('NFKC')
    .replace(
      /(?<=\p{Ll}{2})(?=(?:The White House|January|February|March|April|May|June|July|August|September|October|November|December)\b)/gu,
      ' ',
    )
    .replace(/\b(of|the|and|with|for|from|by)(?=\p{Lu}\p{Ll}+)/gu, '$1 ')
}
