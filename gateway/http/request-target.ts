/** The request target: the part of a request line that says which resource is meant, taken apart without guessing. */

export interface Target {
  /** Raw path, starting with one slash. */
  readonly path: string
  /** Raw query with its question mark, or "". */
  readonly search: string
}

const AUTHORITY = /^https?:\/\/[^/?#]*/i
/** Written forms that another reader of the same path could take for a different path. */
const AMBIGUOUS = /\\|#|\/\/|%(?:2f|5c|00)|[^\x21-\x7e]|\/(?:\.|%2e){1,2}(?:\/|$)/i

/**
 * Takes origin-form ("/a?b") and absolute-form ("http://host/a?b") targets apart. Null where the path is malformed or
 * ambiguous (encoded slash or backslash, empty or dot segments, a null byte, a broken percent escape): no route of
 * ours has such an address, so nothing behind one can be reached by another spelling.
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

/** Query or form text by URLSearchParams: a repeated key becomes an array; "__proto__" is a key like any other. */
export function parsePairs(text: string): Record<string, string | string[]> {
  const pairs = new Map<string, string | string[]>()
  for (const [name, value] of new URLSearchParams(text)) collect(pairs, name, value)
  return Object.fromEntries(pairs)
}

/** Adds a value under a name; the second of a name makes an array. */
export function collect<Value>(pairs: Map<string, Value | Value[]>, name: string, value: Value): void {
  const before = pairs.get(name)
  if (before === undefined) pairs.set(name, value)
  else if (Array.isArray(before)) before.push(value)
  else pairs.set(name, [before, value])
}

/** The public address of a resource: always below BASE_URL, whatever Host or X-Forwarded-* say. */
export function publicUrl(baseUrl: string, { path, search }: Target): string {
  const url = baseUrl + path + search
  // Plain addresses, most of all, are in normal form already.
  return search === '' && /^[\w./-]+$/.test(path) ? url : new URL(url).href
}
