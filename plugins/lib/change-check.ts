/** Keeps what a process remembers of the database up to date without a statement per call. */

/** How long a process may answer from memory before it looks for changes of other processes. */
export const CHECK_MS = 1_000

/**
 * Calls `look` at most once per `everyMs`, however many callers there are. `look` reads whether anybody has written, and
 * updates what is remembered.
 */
export class ChangeCheck {
  readonly #look: () => Promise<void>
  readonly #everyMs: number
  #lookedAt = -Infinity
  #looking: Promise<void> | null = null
  /** Number of calls of `expire`, and how many of them the last look came after. */
  #expired = 0
  #covered = 0

  constructor(look: () => Promise<void>, everyMs = CHECK_MS) {
    this.#look = look
    this.#everyMs = everyMs
  }

  /** Makes the next caller look, as after a write of this process. */
  expire(): void {
    this.#expired += 1
  }

  /** True while what is remembered is at most `everyMs` old and not older than the last `expire`. */
  get isCurrent(): boolean {
    return this.#covered >= this.#expired && performance.now() - this.#lookedAt < this.#everyMs
  }

  /** Resolves when what is remembered is current. */
  async run(): Promise<void> {
    const expired = this.#expired
    if (this.isCurrent) return
    // A look that began before the write may have missed it.
    do await (this.#looking ??= this.#lookOnce())
    while (this.#covered < expired)
  }

  async #lookOnce(): Promise<void> {
    const [began, expired] = [performance.now(), this.#expired]
    try {
      await this.#look()
      this.#lookedAt = began
      this.#covered = expired
    } finally {
      this.#looking = null
    }
  }
}
