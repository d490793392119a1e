/** Words of a text with their places. */

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
