/**
 * Names that are not in the gazetteer: those whose form says what they are (counties, universities, committees, state
 * courts), and persons that a grammar finds.
 */
import { createRequire } from 'node:module'
import { type EntityType, facts, slugOf } from './gazetteer.ts'

export interface Named {
  readonly id: string
  readonly type: EntityType
  readonly name: string
  readonly start: number
  readonly end: number
  /** True if a place inside the name counts as well: the state in "Ohio Supreme Court". */
  readonly isOpen: boolean
}

const CAPITAL = "\\p{Lu}[\\p{L}’'-]+"
const STATES = facts.entries.filter(({ id }) => id.startsWith('place:US-')).map(({ name }) => name)
const FIRST =
  'Palm|Los|San|Santa|Prince|Salt|Contra|El|St\\.|New|Fort|La|Las|Du|De|Le|Van|Anne|Rio|Cape|Grand|Jim|Fond du'
const MIDDLE =
  'State|International|Tech|Christian|Methodist|Mason|Washington|Forest|Hopkins|Mellon|A&M|Atlantic|Southern'

interface Form {
  readonly type: EntityType
  readonly pattern: RegExp
  readonly isOpen?: boolean
  /** First words that show that the match is not a name. */
  readonly not?: RegExp
}

const FORMS: readonly Form[] = [
  {
    type: 'place',
    pattern: new RegExp(`\\b(?:(?:${FIRST}) )?${CAPITAL} County\\b`, 'gu'),
    not: /^(?:The|Every|Each|All|Our|This|That|My|Rural|Local|Former|State|Single|Red|Blue|Swing|Bellwether|American) /,
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:University|College) of (?:the )?(?:(?:North|South|West|New|Southern|Northern|Notre|Rhode|St\\.) )?${CAPITAL}`,
      'gu',
    ),
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:${CAPITAL} (?=(?:${MIDDLE}) ))?(?:[\\p{Lu}&]+|${CAPITAL}) (?:University|College)\\b(?! (?:of|Professor|Teaching|Admission|Campus|Tour|Student))`,
      'gu',
    ),
    not: /^(?:The|A|Electoral|Community|Great|My|Our|State|American|Every|First|Private|Public|Major|Top|Elite|For-Profit) /,
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:House|Senate) (?:(?:${CAPITAL}|and|&|on|the) ){1,6}?(?:Subcommittee|Committee|Caucus)\\b`,
      'gu',
    ),
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:House|Senate) Committee on (?:the )?${CAPITAL}(?:(?:,| and|, and| &) ${CAPITAL}| ${CAPITAL})*`,
      'gu',
    ),
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\bCourt of Appeals for the (?:${CAPITAL} |D\\.C\\. )+Circuit|\\bDistrict Court for the (?:${CAPITAL} )?District of (?:(?:New|North|South|West|Rhode) )?${CAPITAL}`,
      'gu',
    ),
    isOpen: true,
  },
  {
    type: 'organization',
    pattern: new RegExp(
      `\\b(?:${STATES.join('|')}) (?:State )?(?:Senate|House of Representatives|Supreme Court|Legislature|General Assembly|National Guard)\\b(?! (?:Seat|District|Race))`,
      'gu',
    ),
    isOpen: true,
  },
]

/** Finds all such names, in the order of FORMS. A match that overlaps an earlier one is skipped. */
export function findFormalNames(text: string): Named[] {
  const found: Named[] = []
  for (const { type, pattern, isOpen = false, not } of FORMS)
    for (const { 0: match, index: start } of text.matchAll(pattern)) {
      const name = match.replace(/[’']s$/, '')
      const end = start + name.length
      if (not?.test(name) || found.some((other) => other.start < end && start < other.end)) continue
      const id = `${type === 'place' ? 'place' : 'org'}:${slugOf(name.replace(/&/g, 'and'))}`
      found.push({ id, type, name, start, end, isOpen })
    }
  return found
}

/** A person's name that the grammar found, and its position. */
export interface GuessedPerson {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** A match of the grammar. */
interface Match {
  readonly text: string
  readonly offset?: { readonly start: number; readonly length: number }
}

/** A part of the grammar's types: they leave out what a document consists of, and `compute` takes steps one by one. */
interface GrammarView {
  /** The words of each sentence. */
  readonly docs: readonly (readonly { readonly pre: string; readonly text: string; readonly post: string }[])[]
  /** The parts at these places: here the sentences of these numbers. */
  update(sentences: readonly (readonly [number])[]): GrammarView
  compute(steps: readonly string[]): GrammarView
  people(): GrammarView
  toView(): GrammarView
  json(options: { readonly offset: true }): readonly Match[]
}

/** Only this many characters are parsed, because the grammar takes a second for ten thousand words. */
const MAX_PARSED = 6000
const TITLES = new Set(facts.context.titles)
const INSTITUTIONS = new Set(facts.context.institutions)
const BORROWERS = new Set(facts.context.borrowers)
const COMMON = new Set([...facts.context.common, ...facts.context.institutions])

/** What the grammar does with a text once it has been split, to find persons: all of its own steps but the last, "chunks". */
const STEPS = ['index', 'id', 'freeze', 'lexicon', 'preTagger', 'contractionTwo', 'postTagger']

/** Finds persons of two to four capitalised words of which the first is a given name. Titles are removed. */
export function guessPersons(text: string): GuessedPerson[] {
  // Links, handles and hashtags would confuse the grammar.
  const readable = text.slice(0, MAX_PARSED).replace(/https?:\/\/\S+|[@#]\w+/g, (link) => ' '.repeat(link.length))
  if (!mayNamePerson(readable)) return []
  const document = grammar().nlp.tokenize(readable) as unknown as GrammarView
  // The grammar looks at each sentence for itself, and most of them name nobody.
  const sentences = document.docs.flatMap((words, at) => {
    const sentence = words.map(({ pre, text: word, post }) => pre + word + post).join('')
    return mayNamePerson(sentence) ? [[at] as const] : []
  })
  if (sentences.length === 0) return []
  const matches = document.update(sentences).compute(STEPS).people().toView().json({ offset: true })
  let after = 0
  return matches.flatMap((match): GuessedPerson[] => {
    const name = bareName(match.text)
    const start = readable.indexOf(name, Math.max(after, match.offset?.start ?? 0))
    if (name === '' || start < 0) return []
    const end = start + name.length
    after = end
    return isName(name) && !isNamesake(readable.slice(0, start), readable.slice(end)) ? [{ name, start, end }] : []
  })
}

/** A word with a capital, and the next one, if that may continue a name. */
const BEFORE_NAME = /\p{Lu}\S*(?=\s+((?:\p{Lu}[\p{Ll}’'.-]|de|la|van|von|bin|al)\S*))/gu

/** False if no two words could begin a name that `isName` accepts: most sentences name nobody, and are not parsed. */
function mayNamePerson(text: string): boolean {
  for (const [word, next = ''] of text.matchAll(BEFORE_NAME)) {
    if (isNoLaterName(next.replace(/\P{L}+$/u, ''))) continue
    for (const { index } of word.matchAll(/\p{Lu}/gu)) {
      const first = word.slice(index)
      if (PART.test(first) && isGivenName(first)) return true
    }
  }
  return false
}

/** Removes titles in front, verbs at the end, and punctuation around a name. */
function bareName(text: string): string {
  const words = text
    .replace(/[’']s$/, '')
    .replace(/^[^\p{L}]+|[^\p{L}.]+$/gu, '')
    .replace(/(?<!\b(?:Jr|Sr))\.$/, '')
    .split(/\s+/)
  while (words.length > 1 && TITLES.has(words[0] as string)) words.shift()
  while (
    words.length > 2 &&
    (/^\p{Ll}/u.test(words.at(-1) as string) ||
      /^(?:Primetime|Tonight|Live|Says|Reports)$/.test(words.at(-1) as string))
  )
    words.pop()
  return words.join(' ')
}

const PART =
  /^(?:\p{Lu}[\p{Ll}’'-]+(?:-\p{Lu}\p{Ll}+)*|\p{Lu}\.|de|la|van|von|bin|al|Jr\.?|(?:Mc|Mac|O’|O'|D’|D'|De|Di|Du|La|Le|Li|Des|Van|Fitz)\p{Lu}\p{Ll}+)$/u

function isName(name: string): boolean {
  const words = name.split(/\s+/)
  if (words.length < 2 || words.length > 4 || !words.every((word) => PART.test(word))) return false
  return isGivenName(words[0] as string) && !words.slice(1).some(isNoLaterName)
}

/** True for a word that no name has after its first: "Day", "Senator". */
const isNoLaterName = (word: string): boolean => COMMON.has(word) || TITLES.has(word)

/** Returns true if a thing bears the person's name: "George Mason University", "the USS George Washington". */
function isNamesake(before: string, after: string): boolean {
  const next = after.match(/^ (\p{Lu}\p{L}+)/u)?.[1]
  const previous = before.match(/(\p{Lu}\p{L}+) $/u)?.[1]
  return (next !== undefined && INSTITUTIONS.has(next)) || (previous !== undefined && BORROWERS.has(previous))
}

type Lexicon = Readonly<Record<string, string | readonly string[]>>

let loaded: { readonly nlp: typeof import('compromise').default; readonly lexicon: Lexicon } | undefined

/** The grammar and its words. They are loaded with the first text, because they take a tenth of the gateway's start. */
function grammar(): NonNullable<typeof loaded> {
  if (loaded) return loaded
  const nlp = createRequire(import.meta.url)('compromise') as typeof import('compromise').default
  const { one } = nlp.model() as { readonly one: { readonly lexicon: Lexicon } }
  loaded = { nlp, lexicon: one.lexicon }
  return loaded
}

const NAMES = new Set(['MaleName', 'FemaleName', 'FirstName'])
const WORDS = new Set(facts.context.words_not_names)

/** Returns true for "Davy", "María" and "Mike"; false for words that are rarely names, such as "Will". */
export function isGivenName(word: string): boolean {
  if (!/^\p{Lu}/u.test(word) || WORDS.has(word)) return false
  const plain = word.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()
  return word in facts.nicknames || [grammar().lexicon[plain] ?? []].flat().some((tag) => NAMES.has(tag))
}
