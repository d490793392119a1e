import { decimalOf } from './decimal.ts'

const MILLISECONDS_ABOVE = 1e11
const ZONED = /(?:z|[+-]\d{2}:?\d{2}|gmt|utc)$/i

/**
 * Epoch seconds of a time as a recording writes it: seconds, milliseconds, or a date, which is of UTC where it names no
 * zone; null where it is none. Parts of a second are kept.
 *
 * @example momentOf('2026-02-04 21:19:43') // 1770239983
 */
export function momentOf(time: unknown): number | null {
  const number = decimalOf(time)
  const seconds = number === null ? dateOf(String(time).trim()) / 1000 : Number(number)
  if (!(seconds > 0)) return null
  return seconds > MILLISECONDS_ABOVE ? seconds / 1000 : seconds
}

/** A date alone is of UTC by itself. */
function dateOf(text: string): number {
  const isTimed = /\d[T ]\d/.test(text)
  return Date.parse(isTimed && !ZONED.test(text) ? `${text}Z` : text)
}
