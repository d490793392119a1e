/**
 * Serialises a JSON value in canonical form: without white space, with object members sorted by the UTF-16 code units of
 * their names, and with numbers and strings as ECMAScript writes them. Skips undefined members, as JSON.stringify does.
 * Throws TypeError for values without a canonical form: NaN, an infinity, a lone surrogate, a function, a bigint.
 *
 * Source: RFC 8785, "JSON Canonicalization Scheme (JCS)", section 3.2.
 *
 * @example canonicalize({ b: [1e21, '€'], a: -0 }) // '{"a":0,"b":[1e+21,"€"]}'
 */
export function canonicalize(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`JSON cannot represent ${value}`)
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonicalize(item ?? null)).join(',')}]`
  if (typeof value !== 'object') throw new TypeError(`JSON cannot represent a ${typeof value}`)
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    // The operator < compares strings by code units.
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${quote(name)}:${canonicalize(member)}`)
  return `{${members.join(',')}}`
}

const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

/** Whether a text has a UTF-8 form: it has none if it contains half of a character. */
export const hasCanonicalForm = (text: string): boolean => !LONE_SURROGATE.test(text)

function quote(text: string): string {
  if (!hasCanonicalForm(text)) throw new TypeError('a string with a lone surrogate has no UTF-8 form')
  return JSON.stringify(text)
}
