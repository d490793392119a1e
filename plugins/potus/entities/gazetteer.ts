/** Names we know: a trie of words over a file of facts, case sensitive, longest name first. */
import { readFileSync } from 'node:fs'
import { type Word, wordsIn } from './words.ts'

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
  readonly countries: Readonly<Record<string, readonly string[]>>
  readonly entries: readonly Entry[]
}

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

const gazetteer = JSON.parse(readFileSync(new URL('../data/gazetteer.json', import.meta.url), 'utf8')) as Gazetteer

export const GAZETTEER_VERSION = gazetteer.version
export const GAZETTEER_SOURCES = gazetteer.sources
/** Present in nearly every text, so left out when precision and recall are measured. */
export const UNSCORED: ReadonlySet<string> = new Set(gazetteer.unscored)

/** Countries whose names are something else more often: the state, the bird, the name of a man. */
const SHADOWED: Readonly<Record<string, RegExp>> = {
  GE: /\b(Tbilisi|Caucasus|Armenia|Azerbaijan|Saakashvili|Abkhazia|Ossetia)\b/,
  JO: /\b(Amman|King Abdullah|Kingdom of Jordan|Israel|Syria|Iraq|Egypt|Gaza|Middle East)\b/,
  TD: /\b(N.Djamena|Sudan|Sahel|Niger|Cameroon)\b/,
  TR: /\b(Erdo[gğ]an|Ankara|Istanbul|Syria|NATO|F-35|Türkiye|Greece|Russia|President of Turkey)\b/i,
}
const NO_COUNTRIES = ['EU', 'EZ', 'UN', 'QO', 'XA', 'XB', 'ZZ']
const root: Node = { next: new Map(), entry: null }

for (const entry of [...gazetteer.entries, ...countries()])
  for (const form of [entry.name, ...(entry.forms ?? [])]) learn(form, entry)

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
      const forms = gazetteer.countries[code] ?? []
      return [{ id: `place:${code}`, type: 'place', name: name.replace(/ \(.*\)$/, ''), forms }]
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

/** Every known name in the words, the longest from each place on; none inside another. */
export function findNames(words: readonly Word[], text: string): Hit[] {
  const hits: Hit[] = []
  for (let at = 0; at < words.length; at += 1) {
    let node: Node | undefined = root
    let best: Hit | null = null
    for (let end = at; end < words.length; end += 1) {
      node = node.next.get(words[end]!.text)
      if (!node) break
      if (node.entry) best = { entry: node.entry, from: at, to: end + 1 }
      if (words[end]!.ends) break
    }
    if (!best) continue
    if (!isShadowed(best.entry, text) && !isInsideName(best, words)) hits.push(best)
    at = best.to - 1
  }
  return hits
}

/** What stands before a name and makes it another: East Palestine, the Texas State Senate. */
const BEFORE = new Set([
  'East',
  'West',
  'North',
  'South',
  'Northern',
  'Southern',
  'Eastern',
  'Western',
  'New',
  'Port',
  'Fort',
  'Lake',
  'Mount',
])
/** What stands after a place and makes it an institution: the Middle East Forum. */
const AFTER =
  /^(?:Forum|Institute|Post|Times|Journal|University|College|Center|Council|Foundation|Bank|Street|Avenue|Airport|Tribune|Herald|Gazette|Club|Society|Memorial|Review|Examiner|Yankees|Knicks|Cowboys)$/

/** Institutions of the United States whose names the states use too. */
const NATIONAL = new Set(['org:senate', 'org:congress', 'org:supreme-court', 'org:house', 'org:treasury'])
const STATES = new Set(
  gazetteer.entries.filter(({ id }) => id.startsWith('place:US-')).map(({ name }) => name.split(' ').at(-1)),
)

/** Part of a longer name that nobody wrote down. */
function isInsideName({ entry, from, to }: Hit, words: readonly Word[]): boolean {
  const before = words[from - 1]
  const after = words[to]
  const joined = words[to - 1]!.ends ? undefined : after?.text
  if (before?.text === 'Operation' && !before.ends) return true
  if (entry.type === 'place')
    return (before !== undefined && !before.ends && BEFORE.has(before.text)) || AFTER.test(joined ?? '')
  return (
    NATIONAL.has(entry.id) &&
    before !== undefined &&
    !before.ends &&
    (before.text === 'State' || STATES.has(before.text))
  )
}

function isShadowed({ id }: Entry, text: string): boolean {
  const cue = SHADOWED[id.replace('place:', '')]
  return cue !== undefined && id.startsWith('place:') && !cue.test(text)
}
