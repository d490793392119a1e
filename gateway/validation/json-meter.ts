/**
 * Measures JSON while it arrives, before anything parses it. What JSON costs depends on how many values it holds more than
 * on its bytes: 4 MB can be a million objects. A text over a limit is refused at the byte that exceeds it.
 */
import { InvalidInput } from '../errors.ts'

export interface JsonLimits {
  /** How deep arrays and objects may be nested. Validators and digests recurse. */
  readonly depth: number
  /** How many values the text may hold: scalars, arrays and objects. */
  readonly values: number
  /** How many keys an object may have. */
  readonly keys: number
  /** How many items the text itself may have if it is an array. No limit if absent. */
  readonly items?: number
}

/** The limits of every body. A ledger of 200,000 trades with eight fields has 1.8 million values. */
export const JSON_LIMITS: JsonLimits = { depth: 64, values: 2_500_000, keys: 10_000 }

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
/** Most strings are names and short values, which end before a native search has begun. */
const SHORT_STRING = 32

/** Measures one text, chunk by chunk. It does not check whether the text is JSON. */
export class JsonMeter {
  readonly #limits: JsonLimits
  /** The number of keys of each open object, by depth. */
  readonly #keys: Uint32Array
  #depth = 0
  #values = 1
  #items = 1
  #isArray = false
  #isInString = false
  /** True if the next byte is escaped by a backslash at the end of the last chunk. */
  #isEscaped = false

  constructor(limits: JsonLimits = JSON_LIMITS) {
    this.#limits = limits
    this.#keys = new Uint32Array(limits.depth + 1)
  }

  /** How many values were seen. */
  get values(): number {
    return this.#values
  }

  /** Measures the next bytes. Throws InvalidInput as soon as they exceed a limit. */
  take(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length) at = this.#isInString ? this.#skipString(chunk, at) : this.#count(chunk, at)
  }

  /** Counts up to the start of the next string, and returns the position after it. */
  #count(chunk: Uint8Array, from: number): number {
    const { length } = chunk
    for (let at = from; at < length; at += 1) {
      const byte = chunk[at] as number
      // Digits, which are most of a list of figures.
      if (byte > COMMA && byte < COLON) continue
      if (byte === QUOTE) {
        this.#isInString = true
        return at + 1
      }
      if (byte === COMMA) this.#addValue(this.#depth === 1 && this.#isArray)
      else if (byte === COLON) this.#addKey()
      else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) this.#open(byte === OPEN_ARRAY)
      else if ((byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) && this.#depth > 0) this.#depth -= 1
    }
    return length
  }

  /** Returns the position after the end of the string, or the length of the chunk. */
  #skipString(chunk: Uint8Array, from: number): number {
    let at = from
    if (this.#isEscaped) {
      this.#isEscaped = false
      at += 1
    }
    for (const near = Math.min(chunk.length, at + SHORT_STRING); at < near;) {
      const byte = chunk[at]
      at += byte === BACKSLASH ? 2 : 1
      if (byte !== QUOTE) continue
      this.#isInString = false
      return at
    }
    if (at >= chunk.length) {
      this.#isEscaped = at > chunk.length
      return chunk.length
    }
    for (let start = at; ;) {
      const quote = chunk.indexOf(QUOTE, at)
      const end = quote === -1 ? chunk.length : quote
      let first = end
      while (first > start && chunk[first - 1] === BACKSLASH) first -= 1
      const isEscaped = (end - first) % 2 === 1
      if (quote === -1) {
        this.#isEscaped = isEscaped
        return chunk.length
      }
      at = quote + 1
      start = at
      if (isEscaped) continue
      this.#isInString = false
      return at
    }
  }

  #open(isArray: boolean): void {
    if (this.#depth === 0) this.#isArray = isArray
    this.#depth += 1
    if (this.#depth > this.#limits.depth) refuse('too_deep', `Nested deeper than ${this.#limits.depth} levels.`)
    this.#keys[this.#depth] = 0
    this.#addValue(false)
  }

  #addValue(isItem: boolean): void {
    this.#values += 1
    if (this.#values > this.#limits.values)
      refuse('too_many_values', `Holds more than ${this.#limits.values} values; send less at once.`)
    if (!isItem) return
    this.#items += 1
    if (this.#items > (this.#limits.items ?? Number.POSITIVE_INFINITY))
      refuse('too_long', `Has more than ${this.#limits.items} items; send less at once.`)
  }

  #addKey(): void {
    const count = (this.#keys[this.#depth] ?? 0) + 1
    this.#keys[this.#depth] = count
    if (count > this.#limits.keys)
      refuse('too_many_keys', `An object has more than ${this.#limits.keys} keys; send less at once.`)
  }
}

function refuse(type: string, msg: string): never {
  throw new InvalidInput([{ loc: ['body'], msg, type }])
}
