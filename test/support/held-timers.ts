/** Timers of this process that fire when a test says so, instead of after their time. */
export interface HeldTimers {
  /** Fires every timer that waits, whatever its time. One that repeats waits again. */
  fire(): void
  /** Gives the process its own timers back. */
  release(): void
}

interface Held {
  readonly run: () => void
  readonly repeats: boolean
  unref(): Held
}

/** Holds the timers that are set from now on. Those of `node:timers/promises` are not among them. */
export function holdTimers(): HeldTimers {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis
  const own = { setTimeout, setInterval, clearTimeout, clearInterval }
  const waiting = new Set<unknown>()
  const hold = (repeats: boolean) => (run: () => void) => {
    const timer: Held = { run, repeats, unref: () => timer }
    waiting.add(timer)
    return timer
  }
  const clear = (timer: unknown): void => void waiting.delete(timer)
  const held = { setTimeout: hold(false), setInterval: hold(true), clearTimeout: clear, clearInterval: clear }
  Object.assign(globalThis, held)
  return {
    fire() {
      for (const timer of [...waiting] as Held[]) {
        if (!timer.repeats) waiting.delete(timer)
        timer.run()
      }
    },
    release: () => void Object.assign(globalThis, own),
  }
}
