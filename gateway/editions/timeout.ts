/** Work that may never end, such as the start of foreign code: waited for once, and not again while it still hangs. */

/** It took too long, or still hangs from an earlier time; the message goes on from the name of what hangs. */
export class TimedOut extends Error {}

export interface Work<Value> {
  /** Seconds to wait. */
  readonly seconds: number
  /** What to say of it when it takes longer: "does not load". */
  readonly what: string
  run(): Promise<Value>
  /** Gets the value where the work comes to an end after all, and `error` where it fails then. */
  late(ended: { readonly value: Value } | { readonly error: unknown }): void
}

/**
 * Runs work and waits for it as long as it says, then throws TooLong. While work of the same key still hangs, it is not
 * begun again: TooLong is thrown at once, so that one that hangs holds nothing up twice.
 */
export type Timeouts = <Value>(key: string, work: Work<Value>) => Promise<Value>

export function createTimeouts(): Timeouts {
  const hanging = new Set<string>()
  return async (key, { seconds, what, run, late }) => {
    const tooLong = (): TimedOut =>
      new TimedOut(`${what} within ${seconds} seconds. Let it come to an end; it is taken into use then.`)
    if (hanging.has(key)) throw tooLong()
    const running = run()
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        hanging.add(key)
        void running
          .then(
            (value) => ({ value }),
            (error: unknown) => ({ error }),
          )
          .then((ended) => {
            hanging.delete(key)
            late(ended)
          })
        reject(tooLong())
      }, seconds * 1000)
    })
    try {
      return await Promise.race([running, over])
    } finally {
      clearTimeout(timer)
    }
  }
}
