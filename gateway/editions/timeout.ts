/** Timeouts: for the start of a plugin's code, which cannot be cancelled, and for one call, which can. */
import { ServiceError } from '../errors.ts'

/** The work took too long, or still runs from an earlier attempt. The message continues a sentence about the work. */
export class TimedOut extends Error {}

export interface Work<Value> {
  /** Seconds to wait. */
  readonly seconds: number
  /** What to say about the work if it takes longer, e.g. "does not load". */
  readonly what: string
  run(): Promise<Value>
  /** Called if the work ends after the timeout, with its value or its error. */
  late(ended: { readonly value: Value } | { readonly error: unknown }): void
}

/**
 * Runs work and waits until its timeout, then throws TimedOut. The work itself goes on. Work is not started again while
 * earlier work of the same key still runs: TimedOut is thrown at once, so that a plugin that hangs delays one reload only.
 */
export type Timeouts = <Value>(key: string, work: Work<Value>) => Promise<Value>

/** Creates the timeouts of one kind of work. Keys are unique among the work it runs. */
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

/**
 * Runs the work of a call with a signal that aborts when `seconds` have passed or when the caller leaves. It then throws
 * ServiceError product_timeout at once and ignores what becomes of the work.
 */
export async function withTimeout<Value>(
  seconds: number,
  caller: AbortSignal,
  work: (signal: AbortSignal) => Value | Promise<Value>,
): Promise<Value> {
  const controller = new AbortController()
  const { signal } = controller
  const ended = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as ServiceError), { once: true })
  })
  const stop = (message: string): void => controller.abort(new ServiceError('product_timeout', message))
  const leave = (): void => stop('The caller left before the answer; nothing was charged.')
  const timer = setTimeout(
    () => stop(`The product took longer than ${seconds} second${seconds === 1 ? '' : 's'}; nothing was charged.`),
    seconds * 1000,
  )
  if (caller.aborted) leave()
  else caller.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([ended, signal.aborted ? ended : (async () => work(signal))()])
  } finally {
    clearTimeout(timer)
    caller.removeEventListener('abort', leave)
  }
}
