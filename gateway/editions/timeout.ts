/** Timeouts: for the start of a plugin's code, which cannot be cancelled, and for one call, which can. */
import { type Awaitable, isPromise } from '../awaitable.ts'
import { ServiceError } from '../errors.ts'
import type { Operation, Queue } from '../plugin/catalog.ts'

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

/** A call that runs, as the worker pool sees it. */
export interface RunningCall {
  /** Where its functions wait for a thread. A product that is asked waits where the asking call does. */
  readonly queue: Queue
  /** The call waits for a thread. That does not count towards its timeout, until the returned function is called. */
  wait(): () => void
}

/** The property of a `Call` that holds its RunningCall. A copy with a spread has it too. */
export const RUNNING = Symbol('running')

/** Returns the running call behind a `Call` of a plugin. Undefined for what a plugin has made up, such as that of a job. */
export function runningOf(
  call: { readonly [RUNNING]?: RunningCall; readonly id: string } | undefined,
): RunningCall | undefined {
  return call?.[RUNNING]
}

/** Who waits for a call. */
export interface Caller {
  /** The call that asks, if a product does. */
  readonly asking?: RunningCall | undefined
  readonly hasLeft: boolean
  /** Aborts when the caller leaves. It may be created when it is first read: it costs more than a small call. */
  readonly signal: AbortSignal
  /** Calls back when the caller leaves. Returns a function that stops it. */
  onLeave(listener: () => void): () => void
}

/** The caller that leaves when a signal aborts. */
export function callerOf(signal: AbortSignal, asking?: RunningCall): Caller {
  return new SignalCaller(signal, asking)
}

class SignalCaller implements Caller {
  readonly signal: AbortSignal
  readonly asking: RunningCall | undefined

  constructor(signal: AbortSignal, asking?: RunningCall) {
    this.signal = signal
    this.asking = asking
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
 * Runs the work of a call with a signal that aborts when it has run for `timeoutSeconds` or when its caller leaves. The call then
 * fails with ServiceError product_timeout at once, and what becomes of the work is ignored. Waiting for a thread does not
 * count: the product is not to blame for it. Work that returns a value at once needs neither timer nor signal.
 */
export function withTimeout<Value>(
  options: Pick<Operation, 'timeoutSeconds' | 'queue'>,
  caller: Caller,
  work: (running: RunningCall & { readonly signal: AbortSignal }) => Awaitable<Value>,
): Awaitable<Value> {
  const timeout = new Timeout(options, caller)
  if (caller.hasLeft) throw timeout.leave()
  const result = work(timeout)
  return isPromise(result) ? timeout.race(result) : result
}

class Timeout implements RunningCall {
  readonly queue: Queue
  readonly #seconds: number
  readonly #caller: Caller
  readonly #began = performance.now()
  #controller: AbortController | null = null
  #ended: ServiceError | null = null
  #reject: ((error: ServiceError) => void) | null = null
  #timer: NodeJS.Timeout | undefined
  /** How many functions of the call wait for a thread, since when any does, and how long any did before. */
  #waiting = 0
  #waitingSince = 0
  #waitedMs = 0

  constructor({ timeoutSeconds, queue }: Pick<Operation, 'timeoutSeconds' | 'queue'>, caller: Caller) {
    this.#seconds = timeoutSeconds
    this.#caller = caller
    this.queue = caller.asking?.queue ?? queue
  }

  get signal(): AbortSignal {
    if (this.#controller) return this.#controller.signal
    this.#controller = new AbortController()
    if (this.#caller.hasLeft) this.leave()
    else if (this.#ended) this.#controller.abort(this.#ended)
    return this.#controller.signal
  }

  wait(): () => void {
    const end = this.#caller.asking?.wait()
    if (this.#waiting === 0) this.#waitingSince = performance.now()
    this.#waiting += 1
    return () => {
      end?.()
      this.#waiting -= 1
      if (this.#waiting > 0) return
      this.#waitedMs += performance.now() - this.#waitingSince
      if (this.#timer) this.#startTimer()
    }
  }

  /** Resolves or rejects as `running` does, or rejects when the time is over or the caller leaves. */
  async race<Value>(running: Promise<Value>): Promise<Value> {
    this.#startTimer()
    const ended = new Promise<never>((_, reject) => {
      this.#reject = reject
    })
    const unwatch = this.#caller.onLeave(() => this.leave())
    if (this.#ended) this.#reject?.(this.#ended)
    try {
      return await Promise.race([ended, running])
    } finally {
      clearTimeout(this.#timer)
      this.#timer = undefined
      unwatch()
    }
  }

  /** Ends the call because its caller has left, and returns the error. */
  leave(): ServiceError {
    return this.#stop('The caller left before the answer; nothing was charged.')
  }

  #startTimer(): void {
    clearTimeout(this.#timer)
    const ranMs = performance.now() - this.#began - this.#waitedMs
    this.#timer = setTimeout(() => this.#expire(), this.#seconds * 1000 - ranMs)
  }

  #expire(): void {
    // The timer starts anew when the wait is over. The worker pool bounds it.
    if (this.#waiting > 0) return
    const unit = this.#seconds === 1 ? 'second' : 'seconds'
    this.#stop(`The product took longer than ${this.#seconds} ${unit}; nothing was charged.`)
  }

  #stop(message: string): ServiceError {
    this.#ended ??= new ServiceError('product_timeout', message)
    this.#controller?.abort(this.#ended)
    this.#reject?.(this.#ended)
    return this.#ended
  }
}
