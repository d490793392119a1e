/**
 * Circuit breakers. Five failures in a row open one for a minute; after that one failure opens it again, and one success
 * closes it. Processes that know of each other open and close theirs together, within a second. A call never waits for that.
 */
import { Unavailable } from '../errors.ts'
import type { OperationId } from '../plugin/catalog.ts'
import type { Pause, PauseChange, Peers } from '../stores/peers.ts'

export interface Breaker {
  /** Throws Unavailable while open, with the remaining seconds as Retry-After. */
  assertClosed(): void
  isOpen(): boolean
  succeeded(): void
  failed(): void
}

const FAILURES = 5
const OPEN_MS = 60_000
/** How often the breakers of other processes are asked for. */
const ASK_MS = 500

/** A breaker that other processes may open and close. */
class SharedBreaker implements Breaker {
  readonly operation: OperationId
  readonly #clock: () => number
  readonly #changed: () => void
  #failures = 0
  #openUntil = Number.NEGATIVE_INFINITY

  /** `clock` counts milliseconds and never goes back. `changed` is called when this process opens or closes it. */
  constructor(operation: OperationId, clock: () => number, changed: () => void) {
    this.operation = operation
    this.#clock = clock
    this.#changed = changed
  }

  assertClosed(): void {
    const remaining = this.#remainingMs()
    if (remaining > 0)
      throw new Unavailable(
        `${this.operation} failed ${FAILURES} times in a row and is paused; nothing was charged.`,
        Math.ceil(remaining / 1000),
      )
  }

  isOpen(): boolean {
    return this.#remainingMs() > 0
  }

  succeeded(): void {
    if (this.#failures === 0) return
    // A call that began before it opened proves nothing.
    if (this.isOpen()) return
    const wasOpen = this.#failures >= FAILURES
    this.#failures = 0
    if (wasOpen) this.#changed()
  }

  failed(): void {
    this.#failures += 1
    if (this.#failures < FAILURES) return
    this.#openUntil = this.#clock() + OPEN_MS
    this.#changed()
  }

  /** Milliseconds until the operation is tried again; 0 or less once that is due. Null while it is closed. */
  pauseMs(): number | null {
    return this.#failures >= FAILURES ? this.#remainingMs() : null
  }

  /** Opens it for `ms`, or closes it if null, because another process did. */
  follow(ms: number | null): void {
    if (ms === null) {
      this.#failures = 0
      this.#openUntil = Number.NEGATIVE_INFINITY
    } else if (ms > 0) {
      this.#failures = FAILURES
      this.#openUntil = Math.max(this.#openUntil, this.#clock() + ms)
    }
  }

  // Called many times in a call, so the clock is read only once the breaker has been open.
  #remainingMs(): number {
    return this.#openUntil === Number.NEGATIVE_INFINITY ? 0 : this.#openUntil - this.#clock()
  }
}

/** The breakers of this process. */
export interface Breakers {
  /** Creates the breaker of an operation. `clock` counts milliseconds and never goes back. */
  create(operation: OperationId, clock: () => number): Breaker
  /** Forgets a breaker that is no longer used. */
  forget(breaker: Breaker): void
  /** Begins to follow the breakers of other processes. */
  start(): void
  stop(): void
}

/** Creates the breakers of this process. With `peers` they open and close with those of the other processes. */
export function createBreakers(peers: Peers | null = null): Breakers {
  const breakers = new Set<SharedBreaker>()
  const exchange = peers && new PauseExchange(peers, breakers)
  return {
    create(operation, clock) {
      const breaker: SharedBreaker = new SharedBreaker(operation, clock, () => exchange?.tell(breaker))
      breakers.add(breaker)
      return breaker
    },
    forget(breaker) {
      breakers.delete(breaker as SharedBreaker)
    },
    start: () => exchange?.start(),
    stop: () => exchange?.stop(),
  }
}

/** Tells other processes of the breakers that open and close here, and has ours follow theirs. */
class PauseExchange {
  readonly #peers: Peers
  readonly #breakers: ReadonlySet<SharedBreaker>
  /** Breakers whose last change was not yet reported to the other processes. */
  readonly #unreported = new Map<OperationId, SharedBreaker>()
  /** The version that was seen last, by operation. An older one does not apply to breakers created since. */
  readonly #seen = new Map<OperationId, string>()
  #timer: NodeJS.Timeout | undefined
  #isExchanging = false
  #isStopped = false

  constructor(peers: Peers, breakers: ReadonlySet<SharedBreaker>) {
    this.#peers = peers
    this.#breakers = breakers
  }

  start(): void {
    void this.#exchange()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  tell(breaker: SharedBreaker): void {
    this.#unreported.set(breaker.operation, breaker)
    void this.#exchange()
  }

  async #exchange(): Promise<void> {
    if (this.#isStopped || this.#isExchanging) return
    clearTimeout(this.#timer)
    this.#isExchanging = true
    const told = [...this.#unreported.values()]
    this.#unreported.clear()
    let isHeard = true
    try {
      for (const pause of await this.#peers.exchangePauses(told.map((breaker) => this.#changeOf(breaker))))
        this.#follow(pause)
    } catch {
      // Meanwhile each process counts for itself. A change since then is newer.
      isHeard = false
      for (const breaker of told)
        if (!this.#unreported.has(breaker.operation)) this.#unreported.set(breaker.operation, breaker)
    }
    this.#isExchanging = false
    if (this.#isStopped) return
    const isDue = isHeard && this.#unreported.size > 0
    this.#timer = setTimeout(() => void this.#exchange(), isDue ? 0 : ASK_MS).unref()
  }

  #changeOf(breaker: SharedBreaker): PauseChange {
    const { operation } = breaker
    return { operation, msLeft: breaker.pauseMs(), version: this.#seen.get(operation) ?? null }
  }

  #follow({ operation, version, msLeft }: Pause): void {
    // Local changes made during an exchange are sent with the next, unless a newer remote change wins.
    if (this.#unreported.has(operation) || this.#seen.get(operation) === version) return
    this.#seen.set(operation, version)
    for (const breaker of this.#breakers) if (breaker.operation === operation) breaker.follow(msLeft)
  }
}
