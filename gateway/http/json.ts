/** Strict JSON from untrusted bytes: valid UTF-8, bounded depth, finite numbers, and the place of a mistake. */
import { InvalidInput } from '../errors.ts'

/** Deeper nesting is refused: what walks a value later (validators, digests) recurses. */
const MAX_DEPTH = 64
/** Texts longer than this are not searched for the place of a mistake. */
const SEARCHED = 1_000_000

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses a body. Throws InvalidInput with loc ["body", position] or ["body", ...path]. */
export function parseJson(bytes: Buffer): unknown {
  const text = decodeText(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const position = text.length > SEARCHED ? null : findMistake(text)
    const place = position === null ? '' : position >= text.length ? ': it ends too early' : ` at position ${position}`
    const loc = position === null ? ['body'] : ['body', position]
    throw new InvalidInput([{ loc, msg: `The body is not valid JSON${place}.`, type: 'json_invalid' }])
  }
  assertPlain(value, ['body'])
  return value
}

/** Decodes UTF-8, dropping a byte order mark. Throws InvalidInput where the bytes are something else. */
export function decodeText(bytes: Buffer): string {
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

/** The path is built for containers and wrong numbers only: most values are neither. */
function visit(value: unknown, path: readonly (string | number)[], step: string | number): void {
  const isContainer = typeof value === 'object' && value !== null
  if (isContainer || (typeof value === 'number' && !Number.isFinite(value))) assertPlain(value, [...path, step])
}

const SPACE = /[ \t\n\r]*/y
const TOKEN =
  /(?:([{}[\],:])|("(?:[ !#-[\]-\uffff]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|((?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])))/y

/** Index of the first character that cannot belong to a JSON text (RFC 8259), or its length where it ends too early. */
export function findMistake(text: string): number {
  const open: ('{' | '[')[] = []
  let expects: 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'separator' = 'value'
  let at = 0
  for (;;) {
    SPACE.lastIndex = at
    SPACE.exec(text)
    const start = SPACE.lastIndex
    TOKEN.lastIndex = start
    const match = TOKEN.exec(text)
    if (!match) return start
    const [, mark, string] = match
    const innermost = open.at(-1)
    if (expects === 'separator' && innermost === undefined) return start
    if (mark === undefined) {
      if (expects.endsWith('key') && string !== undefined) expects = 'colon'
      else if (expects.endsWith('value')) expects = 'separator'
      else return start
    } else if ((mark === '{' || mark === '[') && expects.endsWith('value')) {
      open.push(mark)
      expects = mark === '{' ? 'first key' : 'first value'
    } else if (mark === '}' && innermost === '{' && (expects === 'separator' || expects === 'first key')) {
      open.pop()
      expects = 'separator'
    } else if (mark === ']' && innermost === '[' && (expects === 'separator' || expects === 'first value')) {
      open.pop()
      expects = 'separator'
    } else if (mark === ',' && expects === 'separator') expects = innermost === '{' ? 'key' : 'value'
    else if (mark === ':' && expects === 'colon') expects = 'value'
    else return start
    at = TOKEN.lastIndex
  }
}
