/** Timeouts: for the start of a plugin's code, which cannot be cancelled, and for one call, which can. */
import { type Awaitable, isPromise } from '../awaitable.ts'
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

/** Who waits for a call. */
export interface Caller {
  readonly hasLeft: boolean
  /** Aborts when the caller leaves. It may be created when it is first read: it costs more than a small call. */
  readonly signal: AbortSignal
  /** Calls back when the caller leaves. Returns a function that stops it. */
  onLeave(listener: () => void): () => void
}

/** The caller that leaves when a signal aborts. */
export function callerOf(signal: AbortSignal): Caller {
  return new SignalCaller(signal)
}

class SignalCaller implements Caller {
  readonly signal: AbortSignal

  constructor(signal: AbortSignal) {
    this.signal = signal
  }

  get hasLeft(): boolean {
    return this.signal.aborted
  }

  onLeave(listener: () => void): () => void {
    this.signal.addEventListener('abort', listener, { once: true })
    return () => this.signal.removeEventListener('abort', listener)
  }
}

/**
 * Runs the work of a call with a signal that aborts when `seconds` have passed or when its caller leaves. The call then
 * fails with ServiceError product_timeout at once, and what becomes of the work is ignored. Work that returns a value at
 * once needs neither timer nor signal.
 */
export function withTimeout<Value>(
  seconds: number,
  caller: Caller,
  work: (timeout: { readonly signal: AbortSignal }) => Awaitable<Value>,
): Awaitable<Value> {
  const timeout = new Timeout(seconds, caller)
  if (caller.hasLeft) throw timeout.leave()
  const result = work(timeout)
  return isPromise(result) ? timeout.race(result) : result
}

class Timeout {
  readonly #seconds: number
  readonly #caller: Caller
  readonly #began = performance.now()
  #controller: AbortController | null = null
  #ended: ServiceError | null = null
  #reject: ((error: ServiceError) => void) | null = null

  constructor(seconds: number, caller: Caller) {
    this.#seconds = seconds
    this.#caller = caller
  }

  get signal(): AbortSignal {
    if (this.#controller) return this.#controller.signal
    this.#controller = new AbortController()
    if (this.#caller.hasLeft) this.leave()
    else if (this.#ended) this.#controller.abort(this.#ended)
    return this.#controller.signal
  }

  /** Resolves or rejects as `running` does, or rejects when the time is over or the caller leaves. */
  async race<Value>(running: Promise<Value>): Promise<Value> {
    const unit = this.#seconds === 1 ? 'second' : 'seconds'
    const expire = (): unknown =>
      this.#stop(`The product took longer than ${this.#seconds} ${unit}; nothing was charged.`)
    const timer = setTimeout(expire, this.#seconds * 1000 - (performance.now() - this.#began))
    const ended = new Promise<never>((_, reject) => {
      this.#reject = reject
    })
    const unwatch = this.#caller.onLeave(() => this.leave())
    if (this.#ended) this.#reject?.(this.#ended)
    try {
      return await Promise.race([ended, running])
    } finally {
      clearTimeout(timer)
      unwatch()
    }
  }

  /** Ends the call because its caller has left, and returns the error. */
  leave(): ServiceError {
    return this.#stop('The caller left before the answer; nothing was charged.')
  }

  #stop(message: string): ServiceError {
    this.#ended ??= new ServiceError('product_timeout', message)
    this.#controller?.abort(this.#ended)
    this.#reject?.(this.#ended)
    return this.#ended
  }
}
