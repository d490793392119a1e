/** Places in a list: after which event the next page begins. Opaque to callers, and bound to what they asked. */
import { createHash } from 'node:crypto'
import { InvalidInput } from 'tollgate/plugin'

export interface CursorPosition {
  readonly availableAt: number
  readonly seq: number
}

/** Short hash of everything that decides which events a list holds. */
export function filterHash(filter: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(filter).filter(([, value]) => value !== undefined)
  const canonical = JSON.stringify(named.sort(([a], [b]) => (a < b ? -1 : 1)))
  return createHash('sha256').update(canonical).digest('base64url').slice(0, 12)
}

/** @example readCursor(writeCursor('asc', place, hash), 'asc', hash) // the place again */
export function writeCursor(order: string, { availableAt, seq }: CursorPosition, hash: string): string {
  return Buffer.from(JSON.stringify({ v: 1, order, available_at: availableAt, seq, filter_hash: hash })).toString(
    'base64url',
  )
}

/** Throws InvalidInput where the cursor is not one of ours, or of another list. */
export function readCursor(cursor: string, order: string, hash: string): CursorPosition {
  const refuse = (msg: string): never => {
    throw new InvalidInput([{ loc: ['query', 'cursor'], msg, type: 'value_error' }])
  }
  let place: Readonly<Record<string, unknown>> | null = null
  try {
    place = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as Readonly<Record<string, unknown>> | null
  } catch {
    return refuse('is not a cursor of ours; take next_cursor of an answer')
  }
  const { available_at: availableAt, seq } = place ?? {}
  if (place?.['v'] !== 1 || !Number.isSafeInteger(availableAt) || !Number.isSafeInteger(seq))
    return refuse('is not a cursor of ours; take next_cursor of an answer')
  if (place['order'] !== order || place['filter_hash'] !== hash)
    return refuse('belongs to other filters; repeat the call it came from with the cursor added')
  return { availableAt: availableAt as number, seq: seq as number }
}
