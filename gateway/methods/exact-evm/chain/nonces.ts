/**
 * The transaction nonces of one account. A chain mines an account's transactions in the order of their nonces and waits
 * at every gap. So a nonce that is returned unused is remembered as a gap until another transaction uses it.
 */
export interface Nonces {
  /** Sets the nonce that the chain expects next. Lower nonces are used up. */
  atLeast(next: number): void
  /** Returns the lowest gap, or the next nonce if there is no gap. */
  allocate(): number
  /** Returns a nonce that no transaction was sent with. */
  release(nonce: number): void
  /** Marks a nonce as used that was allocated before a restart. */
  adopt(nonce: number): void
  /** Allocates the lowest gap below `nonce`; null if there is none. */
  allocateBelow(nonce: number): number | null
}

/**
 * Creates the nonces of one account, starting at 0.
 * @example atLeast(7); allocate() → 7; allocate() → 8; release(7); allocate() → 7; allocate() → 9
 */
export function createNonces(): Nonces {
  let next = 0
  const gaps = new Set<number>()

  function lowestGap(): number | null {
    return gaps.size === 0 ? null : Math.min(...gaps)
  }

  return {
    atLeast(chainNext) {
      for (const gap of gaps) if (gap < chainNext) gaps.delete(gap)
      next = Math.max(next, chainNext)
    },
    allocate() {
      const gap = lowestGap()
      if (gap === null) return next++
      gaps.delete(gap)
      return gap
    },
    release(nonce) {
      gaps.add(nonce)
      while (gaps.delete(next - 1)) next--
    },
    adopt(nonce) {
      gaps.delete(nonce)
      for (; next < nonce; next++) gaps.add(next)
      next = Math.max(next, nonce + 1)
    },
    allocateBelow(nonce) {
      const gap = lowestGap()
      if (gap === null || gap >= nonce) return null
      gaps.delete(gap)
      return gap
    },
  }
}
