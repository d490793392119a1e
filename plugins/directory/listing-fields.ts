/** Reads fields of untrusted listings: cleans text and limits its length. */
import { epochSeconds, PAYLOAD_RULES } from '../lib/time/timestamps.ts'

const LONGEST_TEXT = 2000
const LONGEST_NAME = 200
const MOST_TAGS = 20
const LONGEST_TAG = 60
/** A source's clock may run ahead of ours by this much. */
const AHEAD_SECONDS = 300

/** Text without control characters, cut to `longest` characters; null if nothing is left. */
export function textOf(value: unknown, longest = LONGEST_TEXT): string | null {
  if (typeof value !== 'string') return null
  const text = value
    // oxlint-disable-next-line no-control-regex -- removes exactly these
    .replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ')
    .trim()
    .slice(0, longest)
  // A surrogate pair that was cut in half becomes the replacement character.
  return text === '' ? null : Buffer.from(text).toString()
}

/** Text of at most 200 characters. */
export const nameOf = (value: unknown): string | null => textOf(value, LONGEST_NAME)

/** Distinct tags in lower case. */
export function tagsOf(...values: readonly unknown[]): string[] {
  const words = values.flat().map((value) => textOf(value, LONGEST_TAG)?.toLowerCase() ?? '')
  return [...new Set(words.filter(Boolean))].slice(0, MOST_TAGS)
}

/** A count: a whole number from 0 that JavaScript holds exactly; null for anything else. */
export function countOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

/**
 * Epoch seconds of a time in a source, rounded down; null if there is none. A time in the future becomes five
 * minutes after `now`.
 *
 * @example sourceTime(4102444800, 1767429328) // 1767429628
 */
export function sourceTime(value: unknown, now: number): number | null {
  const seconds = epochSeconds(value, PAYLOAD_RULES)
  return seconds === null ? null : Math.floor(Math.min(seconds, now + AHEAD_SECONDS))
}
