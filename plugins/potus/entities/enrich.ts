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

/** How often a mention found this way is right: as labelled texts showed, rounded down. */
const CONFIDENCE = { gazetteer: 0.98, grammar: 0.7 } as const
/** Longer texts are long enough without the grammar, which takes a second for ten thousand words. */
const GRAMMAR_CHARACTERS = 6000

/** Entities of a text, the most frequent first. */
export function entitiesOf(text: string): Mention[] {
  const words = wordsIn(text)
  const guesses = guessed(text)
  const spanned = findNames(words, text).map(({ entry, from, to }) => ({
    entry,
    start: words[from]!.start,
    end: words[to - 1]!.end,
    isOneWord: to - from === 1,
  }))
  // A place at the end of a person's name is the family's: Lisa Monaco.
  const known = spanned.filter(
    ({ entry, start, end, isOneWord }) =>
      entry.type !== 'place' || !isOneWord || !guesses.some((guess) => guess.start < start && guess.end === end),
  )
  const apart = guesses.filter((guess) => !known.some(({ start, end }) => start < guess.end && guess.start < end))
  const found = new Map<string, { -readonly [Field in keyof Mention]: Mention[Field] }>()
  const count = (mention: Omit<Mention, 'count' | 'confidence'>): void => {
    const before = found.get(mention.id)
    if (before) before.count += 1
    else found.set(mention.id, { ...mention, count: 1, confidence: CONFIDENCE[mention.method] })
  }
  for (const { entry } of known) count({ id: entry.id, type: entry.type, name: entry.name, method: 'gazetteer' })
  for (const { name } of apart) count({ id: `person:${slug(name)}`, type: 'person', name, method: 'grammar' })
  return [...found.values()].sort((a, b) => b.count - a.count || (a.id < b.id ? -1 : 1))
}

/** A name that a grammar found, and where. */
interface Guess {
  readonly name: string
  readonly start: number
  readonly end: number
}

interface Match {
  readonly text: string
  readonly offset?: { readonly start: number; readonly length: number }
}

/** Persons of two to four capitalised words. */
function guessed(text: string): Guess[] {
  // Shouting has no capitals to go by, and links no grammar.
  const readable = text
    .slice(0, GRAMMAR_CHARACTERS)
    .replace(/https?:\/\/\S+|[@#]\w+/g, (link) => ' '.repeat(link.length))
  const matches = nlp(readable).people().json({ offset: true }) as Match[]
  return matches.flatMap((match): Guess[] => {
    const name = match.text
      .replace(/[’']s$/, '')
      .replace(/^[^\p{L}]+|[^\p{L}.]+$/gu, '')
      .replace(/\.$/, '')
      .replace(PADDING, '')
      .replace(PADDING_AFTER, '')
    const start = readable.indexOf(name, match.offset?.start ?? 0)
    return isName(name) && start >= 0 ? [{ name, start, end: start + name.length }] : []
  })
}

/** First words of lines, titles and slogans that a grammar takes for given names. */
const STOP =
  /\b(MAGA|Great|America|American|Americans|Border|Big|Beautiful|Bill|Day|God|Golden|Fake|News|Radical|Left|President|Presidential|Republican|Democrat|Dumocrat|Congress|Act|Order|Section|Title|Will|May|Mark|Rich|Grant|Christmas|Easter|Thanksgiving|Dome|Force|Fury|Total|Complete|Endorsement|Strong|First|Lady|United|States|Attorney|General|Secretary|Governor|Mayor|District|County|State|Country|Savior|Jesus|Christ|Lord|Holy|Supreme|Court|High|School|Ballroom|Award|Prize|Medal|Cup|Bowl|Stadium|Airport|Street|Avenue|Building|Hall|Center|Park|Operation|Midnight|Hammer|National|International|University|Laboratory|Mother|Father|Committee|Administration|Department|Party|Street|Wall)\b/

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
