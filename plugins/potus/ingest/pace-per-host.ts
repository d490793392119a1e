/** One request per host at a time, with a pause between two, whichever sources and jobs ask. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Keeps a pace for each host, which public servers expect of a program that polls them. */
export interface HostPace {
  /** Runs `work` one second after the last request to the host of the address has ended. */
  run<Result>(url: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result>
}

/** Pause between two requests to one host. */
const HOST_PAUSE_MS = 1_000

/** Creates the pace of all hosts. `pauseMs` is the pause between two requests to one of them. */
export function createHostPace(pauseMs: number = HOST_PAUSE_MS): HostPace {
  const hosts = new Map<string, Promise<unknown>>()
  return {
    run(url, signal, work) {
      const { host } = new URL(url)
      const before = hosts.get(host)
      const run = (async () => {
        if (before) {
          await before.catch(() => {})
          await sleep(pauseMs, undefined, { signal })
        }
        return work()
      })()
      hosts.set(host, run)
      void run.catch(() => {}).finally(() => hosts.get(host) === run && hosts.delete(host))
      return run
    },
  }
}
