/** Cursors for products that answer in pages: where a page ended and what was asked, opaque to callers. */
import { createHash } from 'node:crypto'
import { InvalidInput } from '../errors.ts'

export interface Place {
  /** Moment of the first page, epoch seconds. */
  readonly asOf: number
  /** Sort key of the last item. */
  readonly key: readonly (string | number)[]
}

const INVALID = 'is not a cursor of this query; send next_cursor of the page before with the same other parameters'

/** A word for a query without its cursor. */
function wordOf(query: object): string {
  const rest = Object.entries({ ...query, cursor: undefined }).filter(([, value]) => value !== undefined)
  const sorted = rest.toSorted(([a], [b]) => a.localeCompare(b))
  return createHash('sha256').update(JSON.stringify(sorted)).digest('base64url').slice(0, 12)
}

/**
 * @example writeCursor({ asOf: 1_700_000_000, key: ['BTC', 3] }, { limit: 10 }) // base64url, read back by readCursor
 */
export function writeCursor({ asOf, key }: Place, query: object): string {
  return Buffer.from(JSON.stringify([wordOf(query), asOf, ...key])).toString('base64url')
}

/** The place again. Throws InvalidInput for a cursor that is none, or one of another query. */
export function readCursor(text: string, query: object): Place {
  try {
    const [word, asOf, ...key] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown[]
    const isPart = (part: unknown) => typeof part === 'string' || typeof part === 'number'
    const sound = key.length > 0 && key.every(isPart)
    if (word === wordOf(query) && typeof asOf === 'number' && sound) return { asOf, key }
  } catch {
    // Said below.
  }
  throw new InvalidInput([{ loc: ['query', 'cursor'], msg: INVALID, type: 'value_error', input: text }])
}
