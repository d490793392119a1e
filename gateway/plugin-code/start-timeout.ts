/** Timeouts for loading a plugin's code and setting its products up, which cannot be cancelled. */

/** The work took too long, or an earlier attempt still runs. The message continues a sentence that names the plugin. */
export class TimedOut extends Error {}

/** A piece of work that may take too long. */
export interface Work<Value> {
  /** Seconds to wait. */
  readonly seconds: number
  /** The words for work that takes longer, e.g. "does not load". */
  readonly what: string
  run(): Promise<Value>
  /** Called if the work ends after the timeout, with its value or its error. */
  late(ended: { readonly value: Value } | { readonly error: unknown }): void
}

/**
 * Runs work and throws TimedOut if it takes too long; the work itself goes on. While it does, another call with its key
 * throws TimedOut at once, so that a plugin that hangs delays only one reload.
 */
export type Timeouts = <Value>(key: string, work: Work<Value>) => Promise<Value>

/** Creates the timeouts of one kind of work. A key identifies a piece of work among all of that kind. */
export function createTimeouts(): Timeouts {
  const overdue = new Set<string>()
  return async (key, { seconds, what, run, late }) => {
    const timedOut = (): TimedOut =>
      new TimedOut(`${what} within ${seconds} seconds. It is used as soon as it is ready; fix it if it hangs.`)
    if (overdue.has(key)) throw timedOut()
    const running = run()
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        overdue.add(key)
        void running
          .then(
            (value) => ({ value }),
            (error: unknown) => ({ error }),
          )
          .then((ended) => {
            overdue.delete(key)
            late(ended)
          })
        reject(timedOut())
      }, seconds * 1000)
    })
    try {
      return await Promise.race([running, timeout])
    } finally {
      clearTimeout(timer)
    }
  }
}
