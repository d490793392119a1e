/** One request per host at a time, with a pause between two, whichever sources and jobs ask. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Keeps a pace for each host, which public servers expect of a program that polls them. */
export interface HostPace {
  /** Runs `work` one second after the last request to the host of the address has ended. */
  run<Result>(url: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result>
}

export interface HostPaceOptions {
  /** Epoch milliseconds. */
  readonly now: () => number
  /** Pause between two requests to one host. */
  readonly pauseMs?: number
  /** Waits; rejects if the signal is aborted. Default: a timer. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

const HOST_PAUSE_MS = 1_000

/** Creates the pace of all hosts. */
export function createHostPace({
  now,
  pauseMs = HOST_PAUSE_MS,
  wait = (ms, signal) => sleep(ms, undefined, { signal }),
}: HostPaceOptions): HostPace {
  /** When the last request to each host ends. */
  const hosts = new Map<string, Promise<number>>()
  return {
    run(url, signal, work) {
      const { host } = new URL(url)
      const before = hosts.get(host)
      const run = (async () => {
        if (before) {
          const ended = await before
          // Never longer than a pause, even if the clock was set back.
          const rest = Math.min(pauseMs, ended + pauseMs - now())
          if (rest > 0) await wait(rest, signal)
        }
        return work()
      })()
      hosts.set(host, run.then(now, now))
      return run
    },
  }
}
