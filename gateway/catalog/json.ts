/**
 * JSON with the place of every mistake. JSON.parse keeps the last of two equal keys without a word and names no line;
 * in a price list both would hide a mistake.
 */
export interface JsonProblem {
  readonly pointer: string
  readonly rule: 'read' | 'syntax' | 'duplicate-key'
  readonly message: string
}

const TOKEN =
  /[ \t\r\n]*(?:([{}[\],:])|("(?:[^"\\\n\r\t]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|true\b|false\b|null\b)|($))/y

class SyntaxProblem extends Error {}

/** The value, and what is wrong. After a syntax error the value is undefined; equal keys are all reported. */
export function parseJson(source: string): { readonly value: unknown; readonly problems: readonly JsonProblem[] } {
  const text = source.startsWith('\uFEFF') ? source.slice(1) : source
  const problems: JsonProblem[] = []
  let at = 0
  let token = ''

  const next = (): void => {
    TOKEN.lastIndex = at
    const match = TOKEN.exec(text)
    if (!match) {
      at += /^[ \t\r\n]*/.exec(text.slice(at))?.[0].length ?? 0
      throw new SyntaxProblem(`Unexpected ${wordAt(text, at)}`)
    }
    token = match[1] ?? match[2] ?? match[3] ?? ''
    at += match[0].length
  }
  const is = (sign: string): boolean => token === sign
  const fail = (expected: string): never => {
    at -= token.length
    throw new SyntaxProblem(`Expected ${expected}, found ${token === '' ? 'the end' : token}`)
  }

  /** A string may still hold a control character that the pattern above lets through. */
  const decoded = (): unknown => {
    try {
      return JSON.parse(token)
    } catch {
      at -= token.length
      throw new SyntaxProblem('Unexpected control character in a string')
    }
  }

  function value(pointer: string): unknown {
    if (is('{')) return object(pointer)
    if (is('[')) return array(pointer)
    if (token === '' || /^[}\],:]/.test(token)) return fail('a value')
    return decoded()
  }

  function object(pointer: string): unknown {
    const entries = new Map<string, unknown>()
    next()
    while (!is('}')) {
      if (!token.startsWith('"')) fail('a name in double quotes')
      const key = decoded() as string
      const place = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
      if (entries.has(key))
        problems.push({
          pointer: place,
          rule: 'duplicate-key',
          message: `${placeOf(text, at - token.length)}: "${key}" stands twice in one object. Keep one.`,
        })
      next()
      if (!is(':')) fail('":"')
      next()
      entries.set(key, value(place))
      next()
      if (is(',')) {
        next()
        if (is('}')) fail('a name after ","')
      } else if (!is('}')) fail('"," or "}"')
    }
    return Object.fromEntries(entries)
  }

  function array(pointer: string): unknown[] {
    const items: unknown[] = []
    next()
    while (!is(']')) {
      items.push(value(`${pointer}/${items.length}`))
      next()
      if (is(',')) {
        next()
        if (is(']')) fail('a value after ","')
      } else if (!is(']')) fail('"," or "]"')
    }
    return items
  }

  try {
    next()
    const whole = value('')
    next()
    if (!is('')) fail('nothing more')
    return { value: whole, problems }
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error
    const message = `${placeOf(text, at)}: ${error.message}.`
    return { value: undefined, problems: [...problems, { pointer: '', rule: 'syntax', message }] }
  }
}

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n')
  return `Line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
}

function wordAt(text: string, offset: number): string {
  const rest = text.slice(offset)
  return rest === '' ? 'end' : (/^(?:[\w.+-]+|"[^\n]{0,20}|.)/.exec(rest)?.[0] ?? 'character')
}
