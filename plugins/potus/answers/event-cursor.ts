/** Cursors of event lists: the position of the next page. Opaque to callers and bound to one query. */
import { createHash } from 'node:crypto'
import { InvalidInput } from 'tollgate/plugin'

/** The last event of a page. */
export interface CursorPosition {
  readonly availableAt: number
  readonly seq: number
}

/** Short hash of everything that decides which events a list contains. */
export function filterHash(filter: Readonly<Record<string, unknown>>): string {
  const present = Object.entries(filter).filter(([, value]) => value !== undefined)
  const canonical = JSON.stringify(present.sort(([a], [b]) => (a < b ? -1 : 1)))
  return createHash('sha256').update(canonical).digest('base64url').slice(0, 12)
}

/**
 * Writes the cursor of the next page: JSON as base64url.
 *
 * @example readCursor(writeCursor('asc', position, hash), 'asc', hash) // the same position
 */
export function writeCursor(order: string, { availableAt, seq }: CursorPosition, hash: string): string {
  return Buffer.from(JSON.stringify({ v: 1, order, available_at: availableAt, seq, filter_hash: hash })).toString(
    'base64url',
  )
}

/** Throws InvalidInput if the cursor is malformed or belongs to another query. */
export function readCursor(cursor: string, order: string, hash: string): CursorPosition {
  const refuse = (msg: string): never => {
    throw new InvalidInput([{ loc: ['query', 'cursor'], msg, type: 'value_error' }])
  }
  const malformed = 'is not a cursor of this service; use next_cursor of an earlier answer'
  let content: Readonly<Record<string, unknown>> | null = null
  try {
    content = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as Readonly<Record<string, unknown>> | null
  } catch {
    return refuse(malformed)
  }
  const { available_at: availableAt, seq } = content ?? {}
  if (content?.['v'] !== 1 || !Number.isSafeInteger(availableAt) || !Number.isSafeInteger(seq)) return refuse(malformed)
  if (content['order'] !== order || content['filter_hash'] !== hash)
    return refuse('belongs to other filters; repeat the call it came from with the cursor added')
  return { availableAt: availableAt as number, seq: seq as number }
}
