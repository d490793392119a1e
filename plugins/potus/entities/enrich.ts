/**
 * Who and what a text names: the gazetteer first, then a grammar's guess at names it does not know, minus a stop list.
 * Run once per revision, never in a request.
 */
import nlp from 'compromise'
import { findNames, type EntityType } from './gazetteer.ts'
import { wordsIn } from './words.ts'

export interface Mention {
  readonly id: string
  readonly type: EntityType
  readonly name: string
  readonly count: number
  readonly confidence: number
  readonly method: 'gazetteer' | 'grammar'
}

/** Measured on labelled texts: how often a mention found this way is right. */
const CONFIDENCE = { gazetteer: 0.98, grammar: 0.7 } as const
/** Longer texts are long enough without the grammar, which takes a second for ten thousand words. */
const GRAMMAR_CHARACTERS = 6000

/** Entities of a text, the most frequent first. */
export function entitiesOf(text: string): Mention[] {
  const words = wordsIn(text)
  const hits = findNames(words, text)
  const found = new Map<string, { -readonly [Field in keyof Mention]: Mention[Field] }>()
  const taken = hits.map(({ from, to }) => [words[from]!.start, words[to - 1]!.end] as const)
  for (const { entry } of hits) {
    const known = found.get(entry.id)
    if (known) known.count += 1
    else
      found.set(entry.id, {
        id: entry.id,
        type: entry.type,
        name: entry.name,
        count: 1,
        confidence: CONFIDENCE.gazetteer,
        method: 'gazetteer',
      })
  }
  for (const { type, name } of guessed(text, taken)) {
    const id = `${type}:${slug(name)}`
    const known = found.get(id)
    if (known) known.count += 1
    else found.set(id, { id, type, name, count: 1, confidence: CONFIDENCE.grammar, method: 'grammar' })
  }
  return [...found.values()].sort((a, b) => b.count - a.count || (a.id < b.id ? -1 : 1))
}

interface Guess {
  readonly type: EntityType
  readonly name: string
}

interface Match {
  readonly text: string
  readonly offset?: { readonly start: number; readonly length: number }
}

/** Persons of two to four capitalised words that no known name overlaps. */
function guessed(text: string, taken: readonly (readonly [number, number])[]): Guess[] {
  // Shouting has no capitals to go by, and links no grammar.
  const readable = text
    .slice(0, GRAMMAR_CHARACTERS)
    .replace(/https?:\/\/\S+|[@#]\w+/g, (link) => ' '.repeat(link.length))
  const matches = nlp(readable).people().json({ offset: true }) as Match[]
  return matches.flatMap((match): Guess[] => {
    const start = match.offset?.start ?? readable.indexOf(match.text)
    const end = start + match.text.length
    if (taken.some(([from, to]) => from < end && start < to)) return []
    const name = match.text
      .replace(/[’']s$/, '')
      .replace(/^[^\p{L}]+|[^\p{L}.]+$/gu, '')
      .replace(/\.$/, '')
    const bare = name.replace(PADDING, '').replace(PADDING_AFTER, '')
    return isName(bare) ? [{ type: 'person', name: bare }] : []
  })
}

/** First words of lines, titles and slogans that a grammar takes for given names. */
const STOP =
  /\b(MAGA|Great|America|American|Americans|Border|Big|Beautiful|Bill|Day|God|Golden|Fake|News|Radical|Left|President|Presidential|Republican|Democrat|Dumocrat|Congress|Act|Order|Section|Title|Will|May|Mark|Rich|Grant|Christmas|Easter|Thanksgiving|Dome|Force|Fury|Total|Complete|Endorsement|Strong|First|Lady|United|States|Attorney|General|Secretary|Governor|Mayor|District|County|State|Country|Savior|Jesus|Christ|Lord|Holy|Supreme|Court|High|School|Ballroom|Award|Prize|Medal|Cup|Bowl|Stadium|Airport|Street|Avenue|Building|Hall|Center|Park|Operation|Midnight|Hammer)\b/

/** Words in capitals around a name that are none of it. */
const PADDING =
  /^(?:(?:From|For|With|By|And|The|Of|To|In|On|Deranged|Crooked|Sleepy|Crazy|Dumb|Lying|Failed|Great|Brave|Congratulations|Thank|Exclusive|Breaking|Watch|Poll|Report|Endorsed|Hon|Honorable|King|Queen|Prince|Pope|Sir|Lady) )+(?=\p{Lu}\p{L}+ \p{Lu})/u
const PADDING_AFTER = / (?:Primetime|Show|Tonight|Live|Podcast|Report|Reports|Says|Poll|Interview)$/

function isName(name: string): boolean {
  const words = name.split(/\s+/)
  if (words.length < 2 || words.length > 4 || STOP.test(name)) return false
  return words.every((word) =>
    /^(?:\p{Lu}[\p{Ll}’'-]+(?:\p{Lu}\p{Ll}+)*|\p{Lu}\.|de|la|van|von|bin|al|Jr\.?|(?:Mc|Mac|O’|O')\p{Lu}\p{Ll}+)$/u.test(
      word,
    ),
  )
}

const slug = (name: string): string =>
  name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
