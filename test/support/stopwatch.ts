import { readFileSync } from 'node:fs'

/**
 * Starts a stopwatch. The function that it returns gives the milliseconds since then during which this thread worked, or
 * waited for something else than a core: on a busy machine, the time of other processes is not held against this one.
 */
export function startStopwatch(): () => number {
  const began = performance.now()
  const waited = coreWaitMs()
  return () => performance.now() - began - (coreWaitMs() - waited)
}

/** How long this thread has waited for a core. Linux counts it; elsewhere it is 0. */
function coreWaitMs(): number {
  try {
    // Nanoseconds on a core, nanoseconds of waiting for one, number of turns (proc(5)).
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
