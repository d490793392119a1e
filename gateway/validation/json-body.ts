/** Strict JSON from untrusted bytes: valid UTF-8, bounded depth, finite numbers, and the position of a syntax error. */
import { InvalidInput } from '../errors.ts'
import { findSyntaxError } from './json.ts'

/** Deeper nesting is refused, because validators and digests recurse. */
const MAX_DEPTH = 64
/** Longer texts are not searched for the position of the error. */
const SEARCHED = 1_000_000

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses a body. Throws InvalidInput with loc ["body", position] or ["body", ...path]. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decodeText(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const position = text.length > SEARCHED ? undefined : findSyntaxError(text)?.offset
    const place =
      position === undefined ? '' : position >= text.length ? ': it ends too early' : ` at position ${position}`
    const loc = position === undefined ? ['body'] : ['body', position]
    throw new InvalidInput([{ loc, msg: `The body is not valid JSON${place}.`, type: 'json_invalid' }])
  }
  assertPlain(value, ['body'])
  return value
}

/** Decodes UTF-8, dropping a byte order mark. Throws InvalidInput if the bytes are not UTF-8. */
export function decodeText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new InvalidInput([{ loc: ['body'], msg: 'The body is not valid UTF-8.', type: 'encoding' }])
  }
}

function assertPlain(value: unknown, path: readonly (string | number)[]): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    const msg = 'The number is too large to be represented; send a finite number.'
    throw new InvalidInput([{ loc: path, msg, type: 'finite_number' }])
  }
  if (typeof value !== 'object' || value === null) return
  if (path.length > MAX_DEPTH)
    throw new InvalidInput([{ loc: ['body'], msg: `Nested deeper than ${MAX_DEPTH} levels.`, type: 'too_deep' }])
  if (Array.isArray(value)) for (let index = 0; index < value.length; index++) visit(value[index], path, index)
  else for (const [name, member] of Object.entries(value)) visit(member, path, name)
}

/** Builds the path only for containers and invalid numbers, because most values are neither. */
function visit(value: unknown, path: readonly (string | number)[], step: string | number): void {
  const isContainer = typeof value === 'object' && value !== null
  if (isContainer || (typeof value === 'number' && !Number.isFinite(value))) assertPlain(value, [...path, step])
}
