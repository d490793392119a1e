/** Makes new inputs of old ones: by bytes, by words, and by the values of JSON texts. */
import { isObject } from '../../gateway/validation/json.ts'
import type { Random } from './random.ts'

/** What a mutation may use besides the input. */
export interface Material {
  readonly random: Random
  /** Words of the parser. */
  readonly words: readonly string[]
  /** A second input to splice from. */
  readonly other: Buffer
  readonly maxBytes: number
}

type Mutation = (input: Buffer, material: Material) => Buffer

/** Bytes at which parsers decide something. */
const BYTES = [
  ...Buffer.from('\0\t\n\r "#%&\'()*+,-./0189:;<=>?@AZ[\\]_az{|}~'),
  0x7f,
  0x80,
  0xc0,
  0xe2,
  0xed,
  0xf4,
  0xff,
]
/** Words at which any parser of text may stumble. */
const COMMON_WORDS = [
  '__proto__',
  'constructor',
  'toString',
  'length',
  'null',
  'true',
  'NaN',
  'Infinity',
  '-0',
  '1e999',
  '1e-999',
  '9007199254740993',
  '18446744073709551616',
  '0x10',
  '\uFEFF',
  '\u2028',
  '\u0130',
  '\u00df',
  '\uD83D\uDE00',
  '%00',
  '%2e%2e%2f',
  '\r\n\r\n',
]
const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  1,
  -1,
  0.1,
  1e-320,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 53,
  2 ** 53 + 2,
  8.64e15,
  1e11,
  1e14,
  1e17,
  '',
  ' ',
  '0',
  '-1',
  '1e999',
  'a'.repeat(300),
  '\0',
  '\uD800',
  '__proto__',
  [],
  [[]],
  [null],
  {},
  { bytes: 1 },
  { $ref: '#' },
  { toString: 1, valueOf: 1 },
  { toJSON: 1 },
]

const BYTE_MUTATIONS: readonly Mutation[] = [
  (input, { random }) => withByte(input, random, (byte) => byte ^ (1 << random.below(8))),
  (input, { random }) => withByte(input, random, () => random.oneOf(BYTES)),
  (input, { random }) => withByte(input, random, () => random.below(256)),
  (input, { random }) => withByte(input, random, (byte) => byte + random.below(33) - 16),
  (input, { random }) => insert(input, random.below(input.length + 1), Buffer.from([random.oneOf(BYTES)])),
  (input, { random }) => insert(input, random.below(input.length + 1), Buffer.from([random.below(256)])),
  (input, { random }) => {
    const [start, end] = slice(input, random, 16)
    return cut(input, start, end)
  },
  (input, { random }) => {
    const [start, end] = slice(input, random, input.length)
    return cut(input, start, end)
  },
  (input, { random }) => {
    const [start, end] = slice(input, random, 64)
    return insert(input, random.below(input.length + 1), input.subarray(start, end))
  },
  (input, { random }) => {
    const [start, end] = slice(input, random, 32)
    const part = Buffer.from(input.subarray(start, end)).reverse()
    return insert(cut(input, start, end), start, part)
  },
  (input, { random, words }) => insert(input, random.below(input.length + 1), wordOf(random, words)),
  (input, { random, words }) => {
    const word = wordOf(random, words)
    const at = random.below(input.length + 1)
    return insert(cut(input, at, at + word.length), at, word)
  },
  (input, { random, words }) => replaceWord(input, random, wordOf(random, words)),
  (input, { random }) => replaceNumber(input, random),
  (input, { random, other }) => {
    const [start, end] = slice(other, random, other.length)
    return insert(input, random.below(input.length + 1), other.subarray(start, end))
  },
  (input, { random, other }) =>
    Buffer.concat([input.subarray(0, random.below(input.length + 1)), other.subarray(random.below(other.length + 1))]),
]

/** One mutation in so many makes the input long, which shows work that grows faster than the input. */
const STRETCHED_ONCE_IN = 250
/** JSON texts that are longer are changed by their bytes: parsing each would take most of the time. */
const MAX_JSON_BYTES = 20_000

/** Returns a changed copy of an input, of at most `maxBytes`. */
export function mutate(input: Buffer, material: Material): Buffer {
  const { random, maxBytes } = material
  let output = input
  if (!random.onceIn(3)) output = mutateJson(input, material) ?? output
  const isChanged = output !== input
  for (let left = isChanged ? random.below(2) : 1 + random.below(random.onceIn(4) ? 8 : 3); left > 0; left -= 1)
    output = random.oneOf(BYTE_MUTATIONS)(output, material)
  if (random.onceIn(STRETCHED_ONCE_IN)) output = stretch(output, material)
  return output.length > maxBytes ? output.subarray(0, maxBytes) : output
}

function withByte(input: Buffer, random: Random, change: (byte: number) => number): Buffer {
  if (input.length === 0) return Buffer.from([random.below(256)])
  const output = Buffer.from(input)
  const at = random.below(input.length)
  output[at] = change(output[at] as number)
  return output
}

/** The bounds of a part of at most `most` bytes. */
function slice(input: Buffer, random: Random, most: number): readonly [number, number] {
  const start = random.below(input.length + 1)
  return [start, Math.min(input.length, start + 1 + random.below(Math.max(1, most)))]
}

const insert = (input: Buffer, at: number, part: Uint8Array): Buffer =>
  Buffer.concat([input.subarray(0, at), part, input.subarray(at)])

const cut = (input: Buffer, start: number, end: number): Buffer =>
  Buffer.concat([input.subarray(0, start), input.subarray(end)])

const wordOf = (random: Random, words: readonly string[]): Buffer =>
  Buffer.from(random.oneOf(words.length === 0 || random.onceIn(4) ? COMMON_WORDS : words))

/** Puts a word in the place of another one. */
function replaceWord(input: Buffer, random: Random, word: Buffer): Buffer {
  const places = [...input.toString('latin1').matchAll(/\w+/g)]
  if (places.length === 0) return insert(input, 0, word)
  const { index, 0: found } = random.oneOf(places)
  return insert(cut(input, index, index + found.length), index, word)
}

/** Puts a number in the place of another one. */
function replaceNumber(input: Buffer, random: Random): Buffer {
  const places = [...input.toString('latin1').matchAll(/-?\d+(?:\.\d+)?/g)]
  if (places.length === 0) return input
  const { index, 0: found } = random.oneOf(places)
  const number = Number(found)
  const near = [number + 1, number - 1, -number, number * 2, number * 1000, number / 1000, 10 ** random.below(20)]
  const numbers = VALUES.filter((value) => typeof value === 'number')
  const text = String(random.oneOf(random.onceIn(2) ? near : numbers))
  return insert(cut(input, index, index + found.length), index, Buffer.from(text))
}

/** Repeats a part of the input many times. */
function stretch(input: Buffer, { random, maxBytes }: Material): Buffer {
  if (input.length === 0) return input
  const [start, end] = slice(input, random, random.oneOf([1, 2, 8, 64, input.length]))
  const part = input.subarray(start, end)
  const room = maxBytes - input.length
  if (part.length === 0 || room <= 0) return input
  const length = random.onceIn(4) ? room : random.below(Math.min(room, 4_096))
  return insert(input, end, Buffer.alloc(length - (length % part.length), part))
}

/** Changes one value of a JSON text. Null if the text is not JSON, or is nested too deeply to be written again. */
function mutateJson(input: Buffer, material: Material): Buffer | null {
  try {
    return changeValue(input, material)
  } catch (error) {
    // JSON.parse reads values of any depth. JSON.stringify calls itself for each level, and the stack ends after some 4,000.
    if (error instanceof RangeError) return null
    throw error
  }
}

function changeValue(input: Buffer, { random, words, other }: Material): Buffer | null {
  if (input.length > MAX_JSON_BYTES || !/^\s*[[{]/.test(input.subarray(0, 16).toString('latin1'))) return null
  const value = parsed(input)
  if (value === undefined) return null
  const root = { '': value }
  const places = placesIn(root)
  const [holder, name] = random.oneOf(places)
  const old: unknown = holder[name]
  const holderAsList = Array.isArray(holder) ? holder : null
  switch (random.below(8)) {
    case 0:
    case 1:
      holder[name] = random.oneOf(VALUES)
      break
    case 2:
      if (holderAsList) holderAsList.splice(Number(name), 1)
      else delete holder[name]
      break
    case 3:
      if (holderAsList) holderAsList.splice(Number(name), 0, ...Array<unknown>(1 + random.below(4)).fill(old))
      else define(holder, wordOf(random, words).toString(), old)
      break
    case 4: {
      const donor = parsed(other)
      const [from, its] = random.oneOf(donor === undefined ? places : placesIn({ '': donor }))
      // A copy, because a value that holds itself has no JSON.
      holder[name] = JSON.parse(JSON.stringify(from[its] ?? null)) as unknown
      break
    }
    case 5:
      holder[name] = nested(old, random)
      break
    case 6:
      holder[name] = typeof old === 'string' ? mutateText(old, random, words) : (JSON.stringify(old) ?? '')
      break
    default:
      holder[name] =
        typeof old === 'number' ? old * random.oneOf([-1, 0, 2, 0.5, 1e3, 1e-3]) : wordOf(random, words).toString()
  }
  return Buffer.from(JSON.stringify(root['']) ?? 'null')
}

type Holder = Record<string, unknown>

function parsed(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

/** Every place that holds a value, as its holder and its name there. */
function placesIn(root: Holder): (readonly [Holder, string])[] {
  const places: (readonly [Holder, string])[] = []
  const pending: Holder[] = [root]
  for (let holder = pending.pop(); holder; holder = pending.pop())
    for (const name of Object.keys(holder)) {
      places.push([holder, name])
      const value = holder[name]
      if (Array.isArray(value) || isObject(value)) pending.push(value as Holder)
    }
  return places
}

/** Sets a field, also one that is called __proto__. */
function define(holder: Holder, name: string, value: unknown): void {
  Object.defineProperty(holder, name, { value, enumerable: true, configurable: true, writable: true })
}

function nested(value: unknown, random: Random): unknown {
  let outer = value
  for (let depth = random.oneOf([1, 2, 63, 64, 200, 2_000]); depth > 0; depth -= 1)
    outer = random.onceIn(2) ? [outer] : { a: outer }
  return outer
}

function mutateText(text: string, random: Random, words: readonly string[]): string {
  const at = random.below(text.length + 1)
  const word = wordOf(random, words).toString()
  return random.oneOf([
    text.slice(0, at) + word + text.slice(at),
    text.slice(0, at) + text.slice(at + 1),
    text.repeat(1 + random.below(4)),
    text.toUpperCase(),
    `${text.slice(0, at)}\u0000${text.slice(at)}`,
    ` ${text} `,
  ])
}
