/** Reads the objects of a long JSON list one by one, so that memory does not grow with the list. */
import { FeedError } from './source.ts'
import type { JsonRow } from './feed-body.ts'

/** A row of this many bytes is not one of ours. */
const MAX_ROW = 4 * 1024 * 1024

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
/** Space, tab, line feed, carriage return, and the three bytes of a byte-order mark. */
const BLANK = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf])

/**
 * Yields the objects of the JSON list in these bytes. Other members of the list are skipped. Throws FeedError `not_json` or
 * `wrong_shape` if it is something else, `truncated` if it ends early, and `empty`.
 */
export async function* jsonRows(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<JsonRow> {
  let [depth, isText, isEscaped, hasEnded] = [0, false, false, false]
  let parts: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    // Where the object that is read begins in this chunk; -1 outside of an object.
    let from = depth > 1 ? 0 : -1
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] as number
      if (isText) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isText = false
      } else if (depth === 0) {
        if (BLANK.has(byte)) continue
        if (hasEnded) throw new FeedError('not_json', 'There is more after the end of the list.')
        if (byte !== OPEN_LIST)
          throw new FeedError('wrong_shape', `The body begins with byte ${byte}, not with a list.`)
        depth = 1
      } else if (byte === QUOTE) isText = true
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
        if (depth === 1) from = at
        depth += 1
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        depth -= 1
        if (depth === 0) hasEnded = true
        else if (depth === 1) {
          const row = rowOf([...parts, chunk.subarray(from, at + 1)])
          ;[parts, size, from] = [[], 0, -1]
          if (row) yield row
        }
      }
    }
    if (from >= 0) {
      parts.push(chunk.subarray(from))
      size += chunk.length - from
      if (size > MAX_ROW) throw new FeedError('wrong_shape', `A row is longer than ${MAX_ROW} bytes.`)
    }
  }
  if (depth > 0) throw new FeedError('truncated', 'The list ends before its last bracket.')
  if (!hasEnded) throw new FeedError('empty', 'The body is empty.')
}

/** Null for a list within the list. */
function rowOf(parts: readonly Uint8Array[]): JsonRow | null {
  const text = Buffer.concat(parts).toString('utf8')
  if (!text.startsWith('{')) return null
  try {
    return JSON.parse(text) as JsonRow
  } catch {
    throw new FeedError('not_json', `A row cannot be read: ${JSON.stringify(text.slice(0, 40))}`)
  }
}
