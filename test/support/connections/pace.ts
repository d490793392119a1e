/** How fast bytes are sent. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Limits the bytes per second of all that share it. */
export class Pace {
  readonly #bytesPerMs: number
  #freeAt = performance.now()

  constructor(megabits: number) {
    this.#bytesPerMs = (megabits * 1e6) / 8 / 1000
  }

  /** Waits until so many bytes may be sent. Returns null if they may be sent now. */
  take(bytes: number): Promise<void> | null {
    const now = performance.now()
    this.#freeAt = Math.max(this.#freeAt, now) + bytes / this.#bytesPerMs
    const ms = this.#freeAt - now
    return ms < 2 ? null : sleep(ms)
  }
}
