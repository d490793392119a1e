/** Numbers that look random and are the same in every process: a pure function of where they are used. */

/** 32-bit finaliser of MurmurHash3 (Appleby, public domain). */
function mixed(value: number): number {
  let h = value | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

export interface Random {
  /** In [0, 1). */
  next(): number
  /** A whole number in [from, to]. */
  whole(from: number, to: number): number
  pick<Value>(list: readonly Value[]): Value
}

/** The sequence that belongs to a number, e.g. a day. */
export function randomOf(seed: number): Random {
  let at = mixed(seed ^ 0x9e3779b9)
  const next = (): number => {
    at = (at + 0x6d2b79f5) | 0
    return mixed(at) / 4294967296
  }
  const whole = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1))
  return { next, whole, pick: (list) => list[whole(0, list.length - 1)]! }
}
