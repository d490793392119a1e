/** Parses the request target, the part of the request line that names the resource (RFC 9112, section 3.2). */
import { InvalidInput } from '../errors.ts'

export interface Target {
  /** Raw path, starting with one slash. */
  readonly path: string
  /** Raw query with its question mark, or "". */
  readonly search: string
}

const AUTHORITY = /^https?:\/\/[^/?#]*/i
/** Spellings that another parser could read as a different path. */
const AMBIGUOUS = /\\|#|\/\/|%(?:2f|5c|00)|[^\x21-\x7e]|\/(?:\.|%2e){1,2}(?:\/|$)/i

/**
 * Splits a target in origin-form ("/a?b") or absolute-form ("http://host/a?b"). Returns null if the path is malformed or
 * ambiguous: an encoded slash or backslash, an empty or dot segment, a null byte, or a broken percent escape. No route
 * has such a path, so no route can be reached through another spelling of its path.
 *
 * `parseTarget('http://other/v1/x?a=1')` is `{ path: '/v1/x', search: '?a=1' }`.
 */
export function parseTarget(target: string): Target | null {
  const origin = target.replace(AUTHORITY, '')
  const mark = origin.indexOf('?')
  const path = (mark === -1 ? origin : origin.slice(0, mark)) || '/'
  const search = mark === -1 ? '' : origin.slice(mark)
  if (!path.startsWith('/') || AMBIGUOUS.test(path)) return null
  try {
    decodeURIComponent(path)
  } catch {
    return null
  }
  return { path, search }
}

/** Forms and queries have a few fields. More pairs are probably meant to cost much. */
const MAX_PAIRS = 1_000

/**
 * Parses a query or a form. A repeated key becomes an array. "__proto__" is an ordinary key. Throws InvalidInput if there
 * are more than 1,000 pairs.
 */
export function parsePairs(text: string, section: 'query' | 'body' = 'query'): Record<string, string | string[]> {
  if (text === '') return {}
  if (text.length > MAX_PAIRS && text.split('&', MAX_PAIRS + 1).length > MAX_PAIRS)
    throw new InvalidInput([{ loc: [section], msg: `Has more than ${MAX_PAIRS} fields.`, type: 'too_long' }])
  const pairs = new Map<string, string | string[]>()
  for (const [name, value] of new URLSearchParams(text)) collect(pairs, name, value)
  return Object.fromEntries(pairs)
}

/** Adds a value under a name. The second value of a name turns the entry into an array. */
export function collect<Value>(pairs: Map<string, Value | Value[]>, name: string, value: Value): void {
  const before = pairs.get(name)
  if (before === undefined) pairs.set(name, value)
  else if (Array.isArray(before)) before.push(value)
  else pairs.set(name, [before, value])
}

/** Returns the public URL of a resource. It is always below BASE_URL, whatever Host or X-Forwarded-* say. */
export function publicUrl(baseUrl: string, { path, search }: Target): string {
  const url = baseUrl + path + search
  // Most URLs are plain and already normalized.
  return search === '' && /^[\w./-]+$/.test(path) ? url : new URL(url).href
}
