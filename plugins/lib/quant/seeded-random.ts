/**
 * Creates a seeded generator of uniform numbers in [0, 1): the 32-bit generator mulberry32. It is small, fast and
 * repeatable. Never use it for secrets.
 *
 * Source: T. Ettinger, public domain (2017); passes gjrand's 13 tests.
 *
 * @example seededRandom(1)() // 0.6270739405881613
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
