/** The clock of scripted venues and of the gateway that reads them. It stands still until a test moves it. */
export interface VenueClock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Moves the clock forward. Throws RangeError for a negative number of seconds. */
  advance(seconds: number): void
}

/** Creates a clock that shows `start`, in milliseconds since the epoch. */
export function createVenueClock(start: number): VenueClock {
  let time = start
  return {
    now: () => time,
    advance(seconds) {
      if (seconds < 0) throw new RangeError(`the clock cannot go back ${-seconds} seconds`)
      time += seconds * 1000
    },
  }
}
