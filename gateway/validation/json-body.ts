/** Strict JSON from untrusted bytes: valid UTF-8, of bounded size, finite numbers, and the position of a syntax error. */
import { InvalidInput } from '../errors.ts'
import { findSyntaxError } from './json.ts'
import { JsonMeter } from './json-meter.ts'

/** Longer texts are not searched for the position of the error. */
const SEARCHED = 1_000_000

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses a body. Throws InvalidInput with loc ["body", position] or ["body", ...path], also for a body over JSON_LIMITS. */
export function parseJson(bytes: Uint8Array): unknown {
  new JsonMeter().take(bytes)
  return parseMeasuredJson(bytes)
}

/** Parses a body that a JsonMeter has measured. Throws InvalidInput as `parseJson` does. */
export function parseMeasuredJson(bytes: Uint8Array): unknown {
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
  if (holdsInfinity(value))
    throw new InvalidInput([{ loc: ['body', ...pathOfInfinity(value)], msg: INFINITE, type: 'finite_number' }])
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

const INFINITE = 'The number is too large to be represented; send a finite number.'

/** JSON.parse reads 1e999 as Infinity. */
function holdsInfinity(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsInfinity)
  for (const name in value) if (holdsInfinity((value as Record<string, unknown>)[name])) return true
  return false
}

/** The path to the first infinite number. Only a refusal needs it. */
function pathOfInfinity(value: unknown): (string | number)[] {
  if (typeof value !== 'object' || value === null) return []
  const [name, member] = Object.entries(value).find(([, each]) => holdsInfinity(each)) ?? ['', null]
  return [Array.isArray(value) ? Number(name) : name, ...pathOfInfinity(member)]
}
