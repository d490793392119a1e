/** Words of a text with their places. */

export interface Word {
  readonly text: string
  readonly start: number
  readonly end: number
  /** A sentence or a line ends after it, so no name goes on. */
  readonly ends: boolean
}

const WORD = /[\p{L}\p{N}]+(?:[.&’'\-/][\p{L}\p{N}]+)*/gu
const ENDS = /^(?:[;:!?\n(“"]|\.(?:\s|$))/

/**
 * Splits a text. A possessive ending is cut off, dots inside abbreviations stay.
 *
 * @example wordsIn("China’s U.S. trade").map(({ text }) => text) // ["China", "U.S", "trade"]
 */
export function wordsIn(text: string): Word[] {
  const words: Word[] = []
  for (const match of text.matchAll(WORD)) {
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
