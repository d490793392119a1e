/**
 * The transaction nonces of one account. A chain takes them in order and waits at every gap, so a nonce that is given
 * back is remembered as a hole until another transaction uses it.
 */
export interface Nonces {
  /** What the chain expects next, at the start and whenever it is ahead of us. Nonces below are gone. */
  atLeast(next: number): void
  /** The lowest hole, or the next nonce. */
  allocate(): number
  /** Gives back a nonce nothing was sent with. */
  release(nonce: number): void
  /** Takes a nonce that was allocated before a restart. */
  adopt(nonce: number): void
  /** Allocates the lowest hole below `nonce`; null where there is none. */
  allocateBelow(nonce: number): number | null
}

/** @example atLeast(7); allocate() → 7; allocate() → 8; release(7); allocate() → 7; allocate() → 9 */
export function createNonces(): Nonces {
  let next = 0
  const holes = new Set<number>()

  function lowestHole(): number | null {
    return holes.size === 0 ? null : Math.min(...holes)
  }

  return {
    atLeast(chainNext) {
      for (const hole of holes) if (hole < chainNext) holes.delete(hole)
      next = Math.max(next, chainNext)
    },
    allocate() {
      const hole = lowestHole()
      if (hole === null) return next++
      holes.delete(hole)
      return hole
    },
    release(nonce) {
      holes.add(nonce)
      while (holes.delete(next - 1)) next--
    },
    adopt(nonce) {
      holes.delete(nonce)
      for (; next < nonce; next++) holes.add(next)
      next = Math.max(next, nonce + 1)
    },
    allocateBelow(nonce) {
      const hole = lowestHole()
      if (hole === null || hole >= nonce) return null
      holes.delete(hole)
      return hole
    },
  }
}
