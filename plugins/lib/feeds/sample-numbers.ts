/** Numbers for sample data: pure functions of a text, the same on every machine and after every restart. */
import { createHash } from 'node:crypto'

/**
 * A whole number below 2^32, evenly distributed over texts: the first 32 bits of SHA-256.
 *
 * @example hashOf('abc') // 3128432319
 */
export function hashOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE()
}

/** Picks an item of the list by the hash of a text. */
export function pickFor<Value>(list: readonly Value[], text: string): Value {
  return list[hashOf(text) % list.length]!
}

/**
 * A seed for `seededRandom`, as a signed 32-bit number: FNV-1a over the bytes of the text.
 *
 * Source: G. Fowler, L. C. Noll, K.-P. Vo, "The FNV non-cryptographic hash algorithm" (IETF draft).
 *
 * @example seedOf('a') // -468965076
 */
export function seedOf(text: string): number {
  return Buffer.from(text).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5)
}
