/**
 * How long the event loop was late: it ran other work, collected garbage, or had no core. It is measured by a timer that
 * runs while somebody asks.
 */

const TICK_MS = 20
/** Timers are late by this much on a machine without load. */
const NORMAL_MS = 5

/** The delay of the event loop of this thread, in milliseconds. Only differences of two readings mean something. */
class LoopDelay {
  #watchers = 0
  #lateMs = 0
  #due = 0
  #timer: NodeJS.Timeout | null = null

  /** Measures until `unwatch` is called as often. */
  watch(): void {
    this.#watchers += 1
    if (this.#timer) return
    this.#due = performance.now() + TICK_MS
    this.#timer = setTimeout(() => this.#tick(), TICK_MS).unref()
  }

  unwatch(): void {
    this.#watchers -= 1
  }

  /** Also counts a delay that goes on. */
  get lateMs(): number {
    return this.#lateMs + (this.#timer ? this.#lateNow() : 0)
  }

  #lateNow(): number {
    const ms = performance.now() - this.#due
    return ms > NORMAL_MS ? ms : 0
  }

  #tick(): void {
    this.#lateMs += this.#lateNow()
    this.#due = performance.now() + TICK_MS
    // The timer ends with a tick, not with its last watcher, so that many short calls start it once.
    if (this.#watchers > 0) this.#timer?.refresh()
    else this.#timer = null
  }
}

/** A thread has one event loop. */
export const loopDelay = new LoopDelay()
