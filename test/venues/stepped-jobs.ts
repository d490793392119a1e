/** The jobs of products on the clock of the scripted venues: they run when a test moves it. */
import { setTimeout as delay } from 'node:timers/promises'
import type { JobTimers } from '../../gateway/products/jobs.ts'
import type { VenueClock } from './venue-clock.ts'

export interface SteppedJobs extends JobTimers {
  /**
   * Moves the clock in steps. After each, it runs what is due and waits for it, until this process has been idle for
   * `maxWaitMs`: a run that waits for a silent source goes on beside the next steps, as it would beside real time. Only
   * idle time counts, so that a slow machine has as long as it needs.
   */
  advance(seconds: number, stepSeconds?: number): Promise<void>
  /** Runs what is due now. */
  settle(): Promise<void>
  /** Resolves when no run is under way, or after `limitMs`. A run that waits for a silent source ends in real time. */
  untilNoneRuns(limitMs: number): Promise<void>
}

interface Waiting {
  readonly at: number
  readonly run: () => Promise<void>
}

/** Creates the timers of a gateway whose clock of the data is this one. */
export function createSteppedJobs(clock: VenueClock, maxWaitMs = 1_500): SteppedJobs {
  const waiting = new Set<Waiting>()
  const underWay = new Set<Promise<void>>()
  const start = (run: Waiting['run']): Promise<void> => {
    const running = run().finally(() => underWay.delete(running))
    underWay.add(running)
    return running
  }
  const settle = async (): Promise<void> => {
    // A run may plan another that is due at once.
    for (let round = 0; round < 3; round += 1) {
      const due = [...waiting].filter(({ at }) => at <= clock.now())
      if (due.length === 0) return
      for (const one of due) waiting.delete(one)
      const idle = idleFor(maxWaitMs)
      await Promise.race([Promise.all(due.map(({ run }) => start(run))), idle.over])
      idle.cancel()
    }
  }
  return {
    now: () => clock.now(),
    after(ms, run) {
      const entry = { at: clock.now() + ms, run }
      waiting.add(entry)
      return { cancel: () => void waiting.delete(entry) }
    },
    settle,
    async untilNoneRuns(limitMs) {
      const limit = new AbortController()
      await Promise.race([Promise.allSettled(underWay), delay(limitMs, undefined, { signal: limit.signal })])
      limit.abort()
    },
    async advance(seconds, stepSeconds = 10) {
      for (let left = seconds; left > 0; left -= stepSeconds) {
        clock.advance(Math.min(left, stepSeconds))
        await settle()
      }
    },
  }
}

/** Resolves `over` when the event loop has been idle for some time, all its waits together. */
function idleFor(ms: number): { readonly over: Promise<void>; cancel(): void } {
  const begun = performance.eventLoopUtilization()
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => {
    const look = (left: number): void => {
      timer = setTimeout(() => {
        const idle = performance.eventLoopUtilization(begun).idle
        if (idle >= ms) resolve()
        else look(ms - idle)
      }, left)
    }
    look(ms)
  })
  return { over, cancel: () => clearTimeout(timer) }
}
