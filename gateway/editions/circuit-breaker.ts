/** A circuit breaker. Five failures in a row open it for a minute; after that one failure opens it again. */
import { Unavailable } from '../errors.ts'

export interface Breaker {
  /** Throws Unavailable while open, with the seconds left as Retry-After. */
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
  const leftMs = (): number => openUntil - clock()
  return {
    isOpen: () => leftMs() > 0,
    assertClosed() {
      const left = leftMs()
      if (left > 0)
        throw new Unavailable(
          `${name} failed ${FAILURES} times running and rests for a moment; nothing was charged.`,
          Math.ceil(left / 1000),
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
