/** Persons that nobody wrote down: a grammar's guess, cleaned of titles, and left out where in doubt. */
import nlp from 'compromise'
import { facts } from './facts.ts'
import { isGivenName } from './given.ts'

/** A name that a grammar found, and where. */
export interface Guess {
  readonly name: string
  readonly start: number
  readonly end: number
}

interface Match {
  readonly text: string
  readonly offset?: { readonly start: number; readonly length: number }
}

/** Longer texts are long enough without the grammar, which takes a second for ten thousand words. */
const CHARACTERS = 6000
const TITLES = new Set(facts.context.titles)
const INSTITUTIONS = new Set(facts.context.institutions)
const BORROWERS = new Set(facts.context.borrowers)
const COMMON = new Set([...facts.context.common, ...facts.context.institutions])

/** Persons of two to four capitalised words, the first of them a given name. */
export function guessPersons(text: string): Guess[] {
  // Shouting has no capitals to go by, and links no grammar.
  const readable = text.slice(0, CHARACTERS).replace(/https?:\/\/\S+|[@#]\w+/g, (link) => ' '.repeat(link.length))
  const matches = nlp(readable).people().json({ offset: true }) as Match[]
  let after = 0
  return matches.flatMap((match): Guess[] => {
    const name = bare(match.text)
    const start = readable.indexOf(name, Math.max(after, match.offset?.start ?? 0))
    if (name === '' || start < 0) return []
    const end = start + name.length
    after = end
    return isName(name) && !isBorrowed(readable.slice(0, start), readable.slice(end)) ? [{ name, start, end }] : []
  })
}

/** Without titles before it, and what is not a letter around it. */
function bare(text: string): string {
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
  return isGivenName(words[0] as string) && !words.slice(1).some((word) => COMMON.has(word) || TITLES.has(word))
}

/** "George Mason University", "the USS George Washington": the name of a man, but not the man. */
function isBorrowed(before: string, after: string): boolean {
  const next = after.match(/^ (\p{Lu}\p{L}+)/u)?.[1]
  const previous = before.match(/(\p{Lu}\p{L}+) $/u)?.[1]
  return (next !== undefined && INSTITUTIONS.has(next)) || (previous !== undefined && BORROWERS.has(previous))
}
