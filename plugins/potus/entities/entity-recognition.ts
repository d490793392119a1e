/**
 * Recognises the persons, organizations and places that a text names: known names first, then names whose form says what
 * they are, then persons that a grammar finds. Runs once per revision, never in a request.
 */
import {
  type EntityType,
  type Entry,
  facts,
  findNames,
  type Hit,
  knownPerson,
  nameWords,
  slugOf,
  type Word,
} from './gazetteer.ts'
import { guessPersons, isGivenName, findFormalNames } from './name-patterns.ts'

export interface Mention {
  readonly id: string
  readonly type: EntityType
  readonly name: string
  readonly count: number
  readonly confidence: number
  readonly method: 'gazetteer' | 'form' | 'grammar'
}

/** Share of correct mentions per method, measured on labelled texts and rounded down. */
const CONFIDENCE = { gazetteer: 0.98, form: 0.95, grammar: 0.9 } as const

interface Span {
  readonly start: number
  readonly end: number
}

/** Entities of a text, most frequent first. */
export function recogniseEntities(original: string): Mention[] {
  const text = separateWords(original)
  const words = nameWords(text)
  const hits = findNames(words)
    .filter((hit) => !isPartOfName(hit, words, text))
    .map(({ entry, from, to }) => ({
      entry,
      start: words[from]!.start,
      end: words[to - 1]!.end,
      isOneWord: to - from === 1,
    }))
  const formed = findFormalNames(text).filter(
    (form) => !hits.some((hit) => hit.start <= form.start && form.end <= hit.end),
  )
  const guesses = guessPersons(text).filter((guess) => !formed.some((form) => overlap(form, guess)))
  // A one-word hit inside a longer name belongs to that name: Lisa Monaco, the University of Georgia.
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

/**
 * Restores spaces that scrapers lose between a heading and the text after it, or between a small word and a link. Also
 * turns mathematical letters into ordinary ones (NFKC).
 */
function separateWords(text: string): string {
  return text
    .normalize('NFKC')
    .replace(
      /(?<=\p{Ll}{2})(?=(?:The White House|January|February|March|April|May|June|July|August|September|October|November|December)\b)/gu,
      ' ',
    )
    .replace(/\b(of|the|and|with|for|from|by)(?=\p{Lu}\p{Ll}+)/gu, '$1 ')
}

/** Countries whose names usually mean something else (a state, a bird, a person), and the words that show the country. */
const AMBIGUOUS_COUNTRIES: Readonly<Record<string, RegExp>> = {
  GE: /\b(Tbilisi|Caucasus|Armenia|Azerbaijan|Saakashvili|Abkhazia|Ossetia)\b/,
  JO: /\b(Amman|King Abdullah|Kingdom of Jordan|Israel|Syria|Iraq|Egypt|Gaza|Middle East)\b/,
  TD: /\b(N.Djamena|Sudan|Sahel|Niger|Cameroon)\b/,
  TR: /\b(Erdo[gğ]an|Ankara|Istanbul|Syria|NATO|F-35|Türkiye|Greece|Russia|President of Turkey)\b/i,
  JE: /\bGuernsey\b/,
}
/** Words before a place that make it another place: East Palestine, Fort Worth. */
const PLACE_PREFIXES = new Set(
  'East West North South Northern Southern Eastern Western New Port Fort Lake Mount Upper Lower Little'.split(' '),
)
/** Words before the names of ships, operations and storms. */
const BORROWERS = new Set(facts.context.borrowers)
const INSTITUTIONS = new Set(facts.context.institutions)
const TEAMS = new Set(facts.context.teams)
const NAMESAKES = new Set(facts.context.namesakes)
/** Words after "Intel" that mean intelligence and not the company. */
const INTELLIGENCE = /^(?:Committee|Community|Agency|Agencies|Chair|Chairman|Chief|Officials?|Report|Briefing)$/

/** An institution named after a place: the Gyeongju National Museum. */
const PUBLIC_INSTITUTION = new RegExp(
  `^ (?:National|International|State|Memorial|Public) (?:${facts.context.institutions.join('|')})\\b`,
)

/** Federal institutions whose names the states use too. */
const FEDERAL = new Set(['org:senate', 'org:congress', 'org:supreme-court', 'org:house', 'org:treasury'])
const STATES = facts.entries.filter(({ id }) => id.startsWith('place:US-')).map(({ name }) => name)
const STATE_ENDS = new Set(STATES.map((name) => name.split(' ').at(-1)))
const IN_STATE = new RegExp(`^, (?:${STATES.map((name) => name.replace(/\./g, '\\.')).join('|')})\\b`)

/** Returns true if a hit is only part of another name: the East of East Palestine, the Center after Kennedy. */
function isPartOfName({ entry, from, to }: Hit, words: readonly Word[], text: string): boolean {
  const [first, last] = [words[from] as Word, words[to - 1] as Word]
  const isOneWord = to - from === 1
  const before = from > 0 && !words[from - 1]!.ends && isJoined(text, words[from - 1] as Word, first)
  const previous = before ? words[from - 1]!.text : ''
  const next = words[to]
  const following = !last.ends && next && isJoined(text, last, next) ? next.text : ''
  if (BORROWERS.has(previous) || following === 'Papers') return true
  if (entry.type === 'place') {
    const cue = AMBIGUOUS_COUNTRIES[entry.id.replace('place:', '')]
    if (cue !== undefined && !cue.test(text)) return true
    if (NAMESAKES.has(first.text) && isOneWord && IN_STATE.test(text.slice(last.end, last.end + 20))) return true
    return (
      PLACE_PREFIXES.has(previous) ||
      INSTITUTIONS.has(following) ||
      TEAMS.has(following) ||
      PUBLIC_INSTITUTION.test(text.slice(last.end))
    )
  }
  // Another person of the same family, or a company with that family name.
  if (isOneWord && isGivenName(previous)) return true
  if (entry.type === 'person') return INSTITUTIONS.has(following) && !isHeadline(following, text)
  if (entry.id === 'company:INTC') return INTELLIGENCE.test(following) || /^(?:House|Senate)$/.test(previous)
  if (entry.id === 'company:AAPL') return previous === 'Big' || INSTITUTIONS.has(following)
  return (
    FEDERAL.has(entry.id) &&
    (previous === 'State' || STATE_ENDS.has(previous) || /^(?:Seat|District)s?$/.test(following))
  )
}

/** Returns true if only a space separates two words. */
function isJoined(text: string, a: Word, b: Word): boolean {
  return /^[ \u00A0]$/.test(text.slice(a.end, b.start))
}

/** In a headline every word is capitalised: "Biden Plan Fails" names the person. */
function isHeadline(following: string, text: string): boolean {
  return HEADLINE_WORDS.has(following) && !/[.!?]\s/.test(text.slice(0, 200))
}
const HEADLINE_WORDS = new Set(['Plan', 'Act', 'Bill', 'Project', 'Program', 'News', 'Post', 'Show', 'Law', 'Field'])
