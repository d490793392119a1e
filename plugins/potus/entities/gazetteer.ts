/**
 * The gazetteer: names of known persons, organizations and places, and how they are found in a text. The names are a data
 * file with a version. Search is case sensitive and prefers the longest name.
 */
import { once } from 'tollgate/plugin'
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
  /** Short given names and their full names. */
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
/** Entities present in nearly every text. They are left out when precision and recall are measured. */
export const UNSCORED: ReadonlySet<string> = new Set(facts.unscored)

/**
 * A name as part of an entity id.
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

/** A word of a text and its position. */
export interface Word {
  readonly text: string
  readonly start: number
  readonly end: number
  /** True if a sentence or a line ends after it, so that no name continues. */
  readonly ends: boolean
}

const WORD = /[\p{L}\p{N}]+(?:[.&’'\-/][\p{L}\p{N}]+)*/gu
/** A hyphen between a capitalised and a lower-case word, in either order, or after a prefix as in "Ex-FBI". */
const MIXED = /(?<=^\p{Lu}[\p{L}.]+)-(?=\p{Ll})|(?<=^\p{Ll}+)-(?=\p{Lu})|(?<=^(?:Ex|Anti|Pro|Non|Post|Pre))-(?=\p{Lu})/u
const ENDS = /^(?:[;:!?\n(“"]|\.(?:\s|$))/

/**
 * Splits a text into words. Removes possessive endings, keeps dots inside abbreviations, and splits a name from a
 * lower-case word at a hyphen: "Obama-era" is two words, "Al-Qaeda" is one.
 *
 * @example wordsIn("China’s U.S. trade").map(({ text }) => text) // ["China", "U.S", "trade"]
 */
function wordsIn(text: string): Word[] {
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

/** Returns true for words such as "J." and "Jr.", whose dot does not end a sentence. */
function isAbbreviation(word: string, after: string): boolean {
  return after.startsWith('.') && /^(?:\p{Lu}|Jr|Sr|Dr|St|Mr|Mrs|Ms|Sen|Rep|Gov|Gen|(?:\p{L}\.)+\p{L})$/u.test(word)
}

/** A node of the trie that holds the words of all known names. */
interface Node {
  readonly next: Map<string, Node>
  entry: Entry | null
}

/** A known name in a text. */
export interface Hit {
  readonly entry: Entry
  /** Index of the first word, and of the word after the last. */
  readonly from: number
  readonly to: number
}

const NO_COUNTRIES = ['EU', 'EZ', 'UN', 'QO', 'XA', 'XB', 'ZZ']

interface KnownNames {
  readonly root: Node
  /** Persons by full given name and family name. */
  readonly persons: ReadonlyMap<string, Entry>
}

/** Every known name. */
const names = once((): KnownNames => {
  const root: Node = { next: new Map(), entry: null }
  const persons = new Map<string, Entry>()
  for (const entry of [...facts.entries, ...countries()])
    for (const form of [entry.name, ...(entry.forms ?? [])]) {
      learn(root, form, entry)
      const key = entry.type === 'person' ? keyOf(form) : null
      if (key !== null && !persons.has(key)) persons.set(key, entry)
    }
  return { root, persons }
})

/** Countries by ISO 3166 code: names from ICU, other spellings from the data file. */
function countries(): Entry[] {
  const regions = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' })
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('')
  return letters.flatMap((a) =>
    letters.flatMap((b): Entry[] => {
      const code = a + b
      const name = regions.of(code)
      // Retired codes resolve to their successor, and some codes stand for groups or tests.
      const isCurrent = Intl.getCanonicalLocales(`und-${code}`)[0] === `und-${code}`
      if (name === undefined || !isCurrent || NO_COUNTRIES.includes(code)) return []
      const forms = facts.countries[code] ?? []
      // Some ICU names are never written in news: "Hong Kong SAR China", "Congo - Kinshasa".
      const usual = / SAR | - /.test(name) ? forms[0] : undefined
      return [{ id: `place:${code}`, type: 'place', name: usual ?? name.replace(/ \(.*\)$/, ''), forms }]
    }),
  )
}

/** Adds a name as written, and in capitals if that is unambiguous. */
function learn(root: Node, form: string, entry: Entry): void {
  // A possessive such as "McDonald's" is cut off in texts, and what remains is a family name.
  if (/[’']s$/.test(form)) return
  add(root, form, entry)
  if (form.length >= 4 && /[a-z]/.test(form)) add(root, form.toUpperCase(), entry)
}

function add(root: Node, form: string, entry: Entry): void {
  let node = root
  for (const { text } of wordsIn(form)) {
    let next = node.next.get(text)
    if (!next) node.next.set(text, (next = { next: new Map(), entry: null }))
    node = next
  }
  // The first entry of a name wins: hand-made entries come before lists, and US states before countries.
  node.entry ??= entry
}

const INITIAL = /^\p{Lu}$/u

/** Finds every known name, the longest at each position. Hits do not overlap. */
export function findNames(words: readonly Word[]): Hit[] {
  const hits: Hit[] = []
  const { root } = names()
  for (let at = 0; at < words.length; at += 1) {
    let node: Node | undefined = root
    let best: Hit | null = null
    for (let end = at; end < words.length; end += 1) {
      const next: Node | undefined = node.next.get(words[end]!.text)
      // Skip a middle initial that the gazetteer does not have: Lisa D. Cook.
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
 * The words of a text. Hyphens between two places are split.
 *
 * @example nameWords('The Israel-Lebanon talks').map(({ text }) => text) // ["The", "Israel", "Lebanon", "talks"]
 */
export function nameWords(text: string): Word[] {
  const { root } = names()
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
 * The known person whose name is written differently: with a short given name, or with or without a middle name.
 *
 * @example knownPerson('Andrew Ogles')?.name // "Andy Ogles"
 */
export function knownPerson(name: string): Entry | null {
  const key = keyOf(name)
  return key === null ? null : (names().persons.get(key) ?? null)
}

/** "Dave J. Joyce Jr." and "David Joyce" have the same key. Null for a single word. */
function keyOf(name: string): string | null {
  const words = name.replace(/,? (?:Jr|Sr|I{1,3}|IV)\.?$/, '').split(/\s+/)
  const [first, last] = [words[0] as string, words.at(-1) as string]
  return words.length < 2 ? null : slugOf(`${facts.nicknames[first] ?? first} ${last}`)
}
