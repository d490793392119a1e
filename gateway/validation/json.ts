/**
 * JSON with positions. JSON.parse decides what is valid; jsonc-parser finds where a syntax error is, and finds the
 * duplicate keys that JSON.parse drops without a warning.
 */
// oxlint-disable-next-line import/default -- Node loads the CommonJS build, whose exports are the default export.
import jsonc from 'jsonc-parser'
import { pointerOf } from './issue.ts'

/** A syntax error in a JSON text. */
export interface JsonSyntaxError {
  /** Index of the first character that cannot belong to the text; its length if the text ends too early. */
  readonly offset: number
  /** The fault, e.g. 'Expected ":", found 1'. */
  readonly message: string
}

/** A fault of a JSON file, without the name of the file. */
export interface JsonIssue {
  /** JSON pointer (RFC 6901); empty for the whole file. */
  readonly pointer: string
  readonly rule: 'read' | 'syntax' | 'depth' | 'duplicate-key'
  readonly message: string
}

/** The search for an error recurses, so it stops at this depth. */
const MAX_DEPTH = 500

/** Thrown out of jsonc-parser's callbacks to end a search early. */
class Found extends Error {
  readonly error: JsonSyntaxError | null

  constructor(error: JsonSyntaxError | null) {
    super()
    this.error = error
  }
}

/**
 * Finds the first syntax error (RFC 8259) of a text. Returns null for valid JSON, and for text nested too deeply to
 * search.
 */
export function findSyntaxError(text: string): JsonSyntaxError | null {
  let depth = 0
  const enter = (): void => {
    depth += 1
    if (depth > MAX_DEPTH) throw new Found(null)
  }
  const leave = (): void => {
    depth -= 1
  }
  try {
    jsonc.visit(
      text,
      {
        onObjectBegin: enter,
        onArrayBegin: enter,
        onObjectEnd: leave,
        onArrayEnd: leave,
        onError(code, start) {
          const offset = wordStart(text, start)
          const word = wordAt(text, offset)
          throw new Found({ offset, message: offset < start ? `Unexpected ${word}` : describe(code, word) })
        },
      },
      { disallowComments: true },
    )
  } catch (error) {
    if (error instanceof Found) return error.error
    throw error
  }
  return null
}

/** How deep a JSON file may be nested. What reads it recurses. */
export const MAX_FILE_DEPTH = 200

/**
 * Parses a JSON file. `value` is undefined after a syntax error, and for a text that is nested too deeply. Every duplicate
 * key is reported.
 */
export function parseJson(source: string): { readonly value: unknown; readonly issues: readonly JsonIssue[] } {
  const text = source.startsWith('\uFEFF') ? source.slice(1) : source
  try {
    const value: unknown = JSON.parse(text)
    if (isDeeper(value, MAX_FILE_DEPTH)) {
      const message = `Is nested deeper than ${MAX_FILE_DEPTH} levels. Write it flatter.`
      return { value: undefined, issues: [{ pointer: '', rule: 'depth', message }] }
    }
    return { value, issues: keysWritten(text) === keysKept(value) ? [] : duplicateKeys(text) }
  } catch (error) {
    const found = findSyntaxError(text)
    const message = found ? `${placeOf(text, found.offset)}: ${found.message}.` : `${(error as Error).message}.`
    return { value: undefined, issues: [{ pointer: '', rule: 'syntax', message }] }
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1))
}

/** Counts the keys in the text of a valid JSON value: every string that a colon follows. */
function keysWritten(text: string): number {
  let keys = 0
  for (let start = text.indexOf('"'); start !== -1;) {
    let end = text.indexOf('"', start + 1)
    while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
    let next = end + 1
    while (SPACES.includes(text.charAt(next)) && next < text.length) next += 1
    if (text.charAt(next) === ':') keys += 1
    start = text.indexOf('"', next)
  }
  return keys
}

const SPACES = ' \t\r\n'

/** True if an odd number of backslashes comes before the character. */
function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text.charAt(first - 1) === '\\') first -= 1
  return (at - first) % 2 === 1
}

/** Counts the keys of all objects in a value. JSON.parse keeps one of those that were written twice. */
function keysKept(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let keys = Array.isArray(value) ? 0 : Object.keys(value).length
  for (const each of Object.values(value)) keys += keysKept(each)
  return keys
}

function duplicateKeys(text: string): JsonIssue[] {
  const issues: JsonIssue[] = []
  const open: Set<string>[] = []
  jsonc.visit(text, {
    onObjectBegin: () => void open.push(new Set()),
    onObjectEnd: () => void open.pop(),
    onObjectProperty(key, offset, _length, _line, _character, pathOf) {
      const keys = open.at(-1)
      if (keys?.has(key))
        issues.push({
          pointer: pointerOf(...pathOf(), key),
          rule: 'duplicate-key',
          message: `${placeOf(text, offset)}: the object has the key "${key}" twice. Keep one.`,
        })
      keys?.add(key)
    },
  })
  return issues
}

/** Descriptions of jsonc-parser's error codes (its const enum ParseErrorCode). */
const DESCRIPTIONS: Readonly<Record<number, string | undefined>> = {
  3: 'Expected a key in double quotes',
  4: 'Expected a value',
  5: 'Expected ":"',
  6: 'Expected ","',
  7: 'Expected "," or "}"',
  8: 'Expected "," or "]"',
  9: 'Expected the end of the text',
}

/** Codes 12 to 16 are errors inside a string. */
function describe(code: number, found: string): string {
  const expected = DESCRIPTIONS[code]
  if (expected !== undefined) return `${expected}, found ${found}`
  if (code === 12) return 'The string does not end'
  if (code === 16) return 'Unexpected control character in a string'
  if (code === 14 || code === 15) return 'Unexpected escape sequence in a string'
  return `Unexpected ${found}`
}

/** jsonc-parser reads 01 as two numbers and reports the second one. The error belongs to the whole word. */
function wordStart(text: string, offset: number): number {
  let start = offset
  if (offset < text.length)
    while (/[\w.+-]/.test(text.charAt(offset)) && /[\w.+-]/.test(text.charAt(start - 1))) start -= 1
  return start
}

function wordAt(text: string, offset: number): string {
  return /^(?:[\w.+-]+|"[^"\n]{0,20}"?|[^])/.exec(text.slice(offset, offset + 100))?.[0] ?? 'the end'
}

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n')
  return `Line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
}

/** Returns true for a JSON object: not null and not an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
