/**
 * Cursors for products that answer in pages. A cursor holds where a page ended and a hash of the query, so that it only
 * fits the query it was made for. It is opaque to callers.
 */
import { createHash } from 'node:crypto'
import { InvalidInput } from '../errors.ts'

/** Where a page ended. */
export interface Place {
  /** The asOf of the first page, in epoch seconds. All pages show the data of that moment. */
  readonly asOf: number
  /** The sort key of the last item. The next page begins after it. */
  readonly key: readonly (string | number)[]
}

const INVALID =
  'Is not a cursor of this query. Send next_cursor of the previous page and leave the other parameters unchanged.'

/** A hash of the parameters of a query, without its cursor. */
function hashOf(query: object): string {
  const rest = Object.entries({ ...query, cursor: undefined }).filter(([, value]) => value !== undefined)
  const sorted = rest.toSorted(([a], [b]) => a.localeCompare(b))
  return createHash('sha256').update(JSON.stringify(sorted)).digest('base64url').slice(0, 12)
}

/**
 * Writes the cursor of the next page, as base64url.
 *
 * @example writeCursor({ asOf: 1_700_000_000, key: ['BTC', 3] }, { limit: 10 }) // readCursor reads it back
 */
export function writeCursor({ asOf, key }: Place, query: object): string {
  return Buffer.from(JSON.stringify([hashOf(query), asOf, ...key])).toString('base64url')
}

/** Whether every database can compare it: PostgreSQL refuses the character NUL. */
function isKeyPart(part: unknown): part is string | number {
  return typeof part === 'string' ? !part.includes('\0') : Number.isFinite(part)
}

/** The latest time that a Date can hold, in epoch seconds. */
const LATEST = 8.64e12

/**
 * Reads a cursor that a caller sent. Throws InvalidInput if it is malformed or belongs to another query. Callers can write
 * cursors of their own: the asOf is a time from 1970 on, but compare it with that of the call, and check that the key has
 * the parts and the types of the sort.
 */
export function readCursor(text: string, query: object): Place {
  try {
    const [hash, asOf, ...key] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown[]
    const isTime = typeof asOf === 'number' && asOf >= 0 && asOf <= LATEST
    if (hash === hashOf(query) && isTime && key.length > 0 && key.every(isKeyPart)) return { asOf, key }
  } catch {
    // Malformed cursors are refused below, like those of another query.
  }
  throw new InvalidInput([{ loc: ['query', 'cursor'], msg: INVALID, type: 'value_error', input: text }])
}
