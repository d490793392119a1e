/** The file of facts that names are told by: who and what there is, and the words that stand around names. */
import { readFileSync } from 'node:fs'

export type EntityType = 'person' | 'organization' | 'place'

export interface Entry {
  readonly id: string
  readonly type: EntityType
  readonly name: string
  readonly forms?: readonly string[]
}

interface Gazetteer {
  readonly version: string
  readonly sources: readonly string[]
  readonly unscored: readonly string[]
  /** Short given names and the long ones they stand for. */
  readonly nicknames: Readonly<Record<string, string>>
  readonly context: Readonly<
    Record<
      'titles' | 'institutions' | 'borrowers' | 'teams' | 'common' | 'namesakes' | 'words_not_names',
      readonly string[]
    >
  >
  /** Other spellings of countries, by ISO 3166 code. */
  readonly countries: Readonly<Record<string, readonly string[]>>
  readonly entries: readonly Entry[]
}

export const facts = JSON.parse(readFileSync(new URL('../data/gazetteer.json', import.meta.url), 'utf8')) as Gazetteer

export const GAZETTEER_VERSION = facts.version
export const GAZETTEER_SOURCES = facts.sources
/** Present in nearly every text, so left out when precision and recall are measured. */
export const UNSCORED: ReadonlySet<string> = new Set(facts.unscored)

/**
 * A name as part of an identity.
 *
 * @example slugOf('María Elvira Salazar') // "maria-elvira-salazar"
 */
export function slugOf(name: string): string {
  return name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[’']/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/* --- Words of a text with their places. --- */

export interface Word {
  readonly text: string
  readonly start: number
  readonly end: number
  /** A sentence or a line ends after it, so no name goes on. */
  readonly ends: boolean
}

const WORD = /[\p{L}\p{N}]+(?:[.&’'\-/][\p{L}\p{N}]+)*/gu
/** The hyphen between a capitalised and a common word, in either order, and after a prefix: Ex-FBI. */
const MIXED = /(?<=^\p{Lu}[\p{L}.]+)-(?=\p{Ll})|(?<=^\p{Ll}+)-(?=\p{Lu})|(?<=^(?:Ex|Anti|Pro|Non|Post|Pre))-(?=\p{Lu})/u
const ENDS = /^(?:[;:!?\n(“"]|\.(?:\s|$))/

/**
 * Splits a text. A possessive ending is cut off, dots inside abbreviations stay, and a hyphen parts a name from a common
 * word: "Obama-era" is two words, "Al-Qaeda" is one.
 *
 * @example wordsIn("China’s U.S. trade").map(({ text }) => text) // ["China", "U.S", "trade"]
 */
export function wordsIn(text: string): Word[] {
  const words: Word[] = []
  for (const match of text.matchAll(WORD)) {
    const hyphen = match[0].search(MIXED)
    if (hyphen > 0) {
      const [first, rest] = [match[0].slice(0, hyphen), match[0].slice(hyphen + 1)]
      words.push({ text: first, start: match.index, end: match.index + hyphen, ends: false })
      words.push({ text: rest, start: match.index + hyphen + 1, end: match.index + match[0].length, ends: false })
      continue
    }
    const whole = match[0].replace(/[’'](s|S)$/, '').replaceAll("'", '’')
    const end = match.index + match[0].length
    const after = text.slice(end, end + 2)
    words.push({ text: whole, start: match.index, end, ends: ENDS.test(after) && !isAbbreviation(whole, after) })
  }
  return words
}

/** "J." and "Jr." do not end a sentence. */
function isAbbreviation(word: string, after: string): boolean {
  return after.startsWith('.') && /^(?:\p{Lu}|Jr|Sr|Dr|St|Mr|Mrs|Ms|Sen|Rep|Gov|Gen|(?:\p{L}\.)+\p{L})$/u.test(word)
}

/* --- Names we know: a trie of words over a file of facts, case sensitive, longest name first. --- */

interface Node {
  readonly next: Map<string, Node>
  entry: Entry | null
}

export interface Hit {
  readonly entry: Entry
  /** Position of the first word, and of the word after the last. */
  readonly from: number
  readonly to: number
}

const NO_COUNTRIES = ['EU', 'EZ', 'UN', 'QO', 'XA', 'XB', 'ZZ']
const root: Node = { next: new Map(), entry: null }
/** Persons by given and family name, the given name as it is written out. */
const persons = new Map<string, Entry>()

for (const entry of [...facts.entries, ...countries()])
  for (const form of [entry.name, ...(entry.forms ?? [])]) {
    learn(form, entry)
    const key = entry.type === 'person' ? keyOf(form) : null
    if (key !== null && !persons.has(key)) persons.set(key, entry)
  }

/** Country names by ISO 3166 code, as ICU knows them, and other spellings from the file. */
function countries(): Entry[] {
  const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' })
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('')
  return letters.flatMap((a) =>
    letters.flatMap((b): Entry[] => {
      const code = a + b
      const name = names.of(code)
      // A code given up long ago is written as its successor's; groups and tests are no countries.
      const isCurrent = Intl.getCanonicalLocales(`und-${code}`)[0] === `und-${code}`
      if (name === undefined || !isCurrent || NO_COUNTRIES.includes(code)) return []
      const forms = facts.countries[code] ?? []
      // ICU tells some apart that nobody writes so: "Hong Kong SAR China", "Congo - Kinshasa".
      const usual = / SAR | - /.test(name) ? forms[0] : undefined
      return [{ id: `place:${code}`, type: 'place', name: usual ?? name.replace(/ \(.*\)$/, ''), forms }]
    }),
  )
}

/** A name as written, and shouted where that is no other word. */
function learn(form: string, entry: Entry): void {
  // A shop's possessive is cut off like any other, and what is left is a family name.
  if (/[’']s$/.test(form)) return
  add(form, entry)
  if (form.length >= 4 && /[a-z]/.test(form)) add(form.toUpperCase(), entry)
}

function add(form: string, entry: Entry): void {
  let node = root
  for (const { text } of wordsIn(form)) {
    let next = node.next.get(text)
    if (!next) node.next.set(text, (next = { next: new Map(), entry: null }))
    node = next
  }
  // The first to claim a name keeps it: hand-made entries stand before lists, and a US state before a country.
  node.entry ??= entry
}

const INITIAL = /^\p{Lu}$/u

/** Every known name in the words, the longest from each place on; none inside another. */
export function findNames(words: readonly Word[]): Hit[] {
  const hits: Hit[] = []
  for (let at = 0; at < words.length; at += 1) {
    let node: Node | undefined = root
    let best: Hit | null = null
    for (let end = at; end < words.length; end += 1) {
      const next: Node | undefined = node.next.get(words[end]!.text)
      // A middle initial more than we know: Lisa D. Cook.
      if (!next && end > at && INITIAL.test(words[end]!.text)) continue
      node = next
      if (!node) break
      if (node.entry) best = { entry: node.entry, from: at, to: end + 1 }
      if (words[end]!.ends) break
    }
    if (!best) continue
    hits.push(best)
    at = best.to - 1
  }
  return hits
}

/**
 * The words of a text, with hyphens between places opened.
 *
 * @example nameWords('The Israel-Lebanon talks').map(({ text }) => text) // ["The", "Israel", "Lebanon", "talks"]
 */
export function nameWords(text: string): Word[] {
  return wordsIn(text).flatMap((word) => {
    const parts = word.text.split(/[-–]/)
    if (parts.length < 2 || !parts.every((part) => root.next.get(part.replace(/\.$/, ''))?.entry?.type === 'place'))
      return [word]
    let start = word.start
    return parts.map((part, at) => {
      const end = at === parts.length - 1 ? word.end : start + part.length
      const opened = { text: part.replace(/\.$/, ''), start, end, ends: at < parts.length - 1 || word.ends }
      start = end + 1
      return opened
    })
  })
}

/**
 * The person we know by a name that is written another way: a short given name, a middle name more or less.
 *
 * @example knownPerson('Andrew Ogles')?.name // "Andy Ogles"
 */
export function knownPerson(name: string): Entry | null {
  const key = keyOf(name)
  return key === null ? null : (persons.get(key) ?? null)
}

/** "Dave J. Joyce Jr." and "David Joyce" have one key. Null for a single word. */
function keyOf(name: string): string | null {
  const words = name.replace(/,? (?:Jr|Sr|I{1,3}|IV)\.?$/, '').split(/\s+/)
  const [first, last] = [words[0] as string, words.at(-1) as string]
  return words.length < 2 ? null : slugOf(`${facts.nicknames[first] ?? first} ${last}`)
}
