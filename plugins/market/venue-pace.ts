/** Keeps the requests to each venue within its limit, whichever symbol they are for. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Settings } from './symbols.ts'
import { type ListedVenue, type VenueName, VENUES } from './venues/bar-venues.ts'

/** How often a venue may be asked. */
export interface Pace {
  readonly perSecond: number
  /** Requests that may follow each other at once after a pause. In any minute, `burst + 60 perSecond` are sent at most. */
  readonly burst: number
}

/** The pace of a venue: its own, or that of the settings. */
export function paceOf(name: VenueName, { venues }: Pick<Settings, 'venues'>): Pace {
  const { per_second, burst = 1 }: ListedVenue = VENUES[name]
  return { perSecond: venues?.[name]?.per_second ?? per_second, burst }
}

/** Time, as tests may replace it: milliseconds that never decrease. */
export interface PaceClock {
  now(): number
  wait(ms: number, signal: AbortSignal): Promise<void>
}

const CLOCK: PaceClock = {
  now: () => performance.now(),
  wait: (ms, signal) => pause(ms, undefined, { signal }),
}

/** The turns of all venues in one process. */
export class VenuePaces {
  readonly #clock: PaceClock
  /** When the bucket of each venue is full again. */
  readonly #fullAt = new Map<VenueName, number>()

  constructor(clock: PaceClock = CLOCK) {
    this.#clock = clock
  }

  /**
   * Waits until the venue may be asked, in the order of the calls. Returns false, and takes no turn, if that is longer
   * than `maxWaitMs` away.
   */
  async turn(name: VenueName, { perSecond, burst }: Pace, maxWaitMs: number, signal: AbortSignal): Promise<boolean> {
    const now = this.#clock.now()
    const cost = 1000 / perSecond
    const fullAt = Math.max(now, this.#fullAt.get(name) ?? 0) + cost
    const waits = Math.max(0, fullAt - burst * cost - now)
    if (waits > maxWaitMs) return false
    this.#fullAt.set(name, fullAt)
    if (waits > 0) await this.#clock.wait(waits, signal)
    return true
  }
}
