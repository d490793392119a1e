/**
 * Bounds the gas of all transactions signed within an hour, so that a gateway that misbehaves cannot spend the whole
 * gas account.
 */

const HOUR_MS = 3_600_000

interface Signed {
  readonly gas: bigint
  readonly at: number
}

/** The gas of one network, counted as the gas limits of what was signed. */
export class GasBound {
  readonly #perHour: bigint
  readonly #now: () => number
  /** The highest limit by account and nonce, oldest first. Of several transactions with one nonce only one is mined. */
  readonly #signed = new Map<string, Signed>()
  #sum = 0n

  /** @param now milliseconds, which never decrease */
  constructor(perHour: bigint, now: () => number = () => performance.now()) {
    this.#perHour = perHour
    this.#now = now
  }

  /** Counts a transaction. Returns false, and counts nothing, if it would exceed the bound. */
  admit(account: string, nonce: number, gas: bigint): boolean {
    this.#forget()
    const key = `${account} ${nonce}`
    const before = this.#signed.get(key)
    const more = gas - (before?.gas ?? 0n)
    if (more <= 0n) return true
    if (this.#sum + more > this.#perHour) return false
    this.#sum += more
    // Move it to the end: the higher limit was signed now, not when the first one was.
    this.#signed.delete(key)
    this.#signed.set(key, { gas, at: this.#now() })
    return true
  }

  #forget(): void {
    const oldest = this.#now() - HOUR_MS
    for (const [key, { gas, at }] of this.#signed) {
      if (at > oldest) return
      this.#signed.delete(key)
      this.#sum -= gas
    }
  }
}
