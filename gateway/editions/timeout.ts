/** Timeouts: for the start of a plugin's code, which cannot be cancelled, and for one call, which can. */
import { type Awaitable, isPromise } from '../awaitable.ts'
import { ServiceError, Unavailable } from '../errors.ts'
import { loopDelay } from '../observe/loop-delay.ts'
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
  /** From now on, time that this meter counts does not count towards its timeout, until the returned function is called. */
  loses(meter: Meter): () => void
}

/** Counts milliseconds that a product could not use, because the machine was busy with others. It never goes back. */
export type Meter = () => number

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

/** How much longer than its timeout a call may run because of the time it lost, in seconds. */
const MAX_LOST_SECONDS = 10
const RETRY_AFTER_SECONDS = 10
const OVERLOADED = 'The gateway is too busy to answer in time; nothing was charged.'

export interface TimeoutOptions extends Pick<Operation, 'timeoutSeconds' | 'queue'> {
  /** Counts what the product loses in every call, besides the delay of the event loop. */
  readonly lost?: Meter
  readonly maxLostSeconds?: number
}

/**
 * Runs the work of a call with a signal that aborts when it has run for `timeoutSeconds` or when its caller leaves. The call then
 * fails with ServiceError product_timeout at once, and what becomes of the work is ignored. What the product is not to blame
 * for does not count: waiting for a thread, and time that the machine was too busy to give it (ADR 77). If it has lost
 * more than ten seconds, the call fails with Unavailable. Work that returns a value at once needs neither timer nor signal.
 */
export function withTimeout<Value>(
  options: TimeoutOptions,
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
  readonly #maxLostMs: number
  readonly #productLost: Meter | undefined
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
  /** What the call loses at present, and what it has lost before. */
  readonly #losing = new Set<Meter>()
  #lostMs = 0

  constructor({ timeoutSeconds, queue, lost, maxLostSeconds = MAX_LOST_SECONDS }: TimeoutOptions, caller: Caller) {
    this.#seconds = timeoutSeconds
    this.#maxLostMs = maxLostSeconds * 1000
    this.#productLost = lost
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
      if (this.#timer) this.#startTimer(this.#leftMs())
    }
  }

  loses(meter: Meter): () => void {
    const ends = [this.#caller.asking?.loses(meter), this.#lose(meter)]
    return () => {
      for (const end of ends) end?.()
    }
  }

  #lose(meter: Meter): () => void {
    const before = meter()
    const since = (): number => meter() - before
    this.#losing.add(since)
    return () => {
      if (this.#losing.delete(since)) this.#lostMs += since()
    }
  }

  /** Resolves or rejects as `running` does, or rejects when the time is over or the caller leaves. */
  async race<Value>(running: Promise<Value>): Promise<Value> {
    loopDelay.watch()
    this.#lose(() => loopDelay.lateMs)
    if (this.#productLost) this.#lose(this.#productLost)
    this.#startTimer(this.#leftMs())
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
      loopDelay.unwatch()
      unwatch()
    }
  }

  /** Ends the call because its caller has left, and returns the error. */
  leave(): ServiceError {
    return this.#stop(new ServiceError('product_timeout', 'The caller left before the answer; nothing was charged.'))
  }

  #startTimer(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#expire(), ms)
  }

  /** How long the call may run from now on, if it loses nothing. */
  #leftMs(): number {
    return this.#seconds * 1000 - (performance.now() - this.#began - this.#waitedMs)
  }

  #expire(): void {
    // The timer starts anew when the wait is over. The worker pool bounds it.
    if (this.#waiting > 0) return
    const lostMs = [...this.#losing].reduce((sum, since) => sum + since(), this.#lostMs)
    const leftMs = this.#leftMs()
    const givenMs = Math.min(lostMs, this.#maxLostMs) + leftMs
    if (givenMs > 1) return this.#startTimer(givenMs)
    const unit = this.#seconds === 1 ? 'second' : 'seconds'
    const tooLong = `The product took longer than ${this.#seconds} ${unit}; nothing was charged.`
    const isOverload = lostMs + leftMs > 1
    this.#stop(
      isOverload ? new Unavailable(OVERLOADED, RETRY_AFTER_SECONDS) : new ServiceError('product_timeout', tooLong),
    )
  }

  #stop(error: ServiceError): ServiceError {
    this.#ended ??= error
    // First, because the work may fail with an error of its own when its signal aborts.
    this.#reject?.(this.#ended)
    this.#controller?.abort(this.#ended)
    return this.#ended
  }
}
