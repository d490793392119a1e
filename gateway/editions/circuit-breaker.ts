/** A circuit breaker. Five failures in a row open it for a minute; after that one failure opens it again. */
import { Unavailable } from '../errors.ts'

export interface Breaker {
  /** Throws Unavailable while open, with the remaining seconds as Retry-After. */
  assertClosed(): void
  isOpen(): boolean
  succeeded(): void
  failed(): void
}

const FAILURES = 5
const OPEN_MS = 60_000

/** `clock` counts milliseconds and never goes back. */
export function createBreaker(name: string, clock: () => number): Breaker {
  let failures = 0
  let openUntil = Number.NEGATIVE_INFINITY
  const remainingMs = (): number => openUntil - clock()
  return {
    isOpen: () => remainingMs() > 0,
    assertClosed() {
      const remaining = remainingMs()
      if (remaining > 0)
        throw new Unavailable(
          `${name} failed ${FAILURES} times in a row and is paused; nothing was charged.`,
          Math.ceil(remaining / 1000),
        )
    },
    succeeded() {
      failures = 0
    },
    failed() {
      failures += 1
      if (failures >= FAILURES) openUntil = clock() + OPEN_MS
    },
  }
}
