/**
 * The timeout of a call. Only time that the product could use counts: not the wait for a worker thread, nor time that
 * the machine was too busy to give it (ADR 77).
 */
import { type Awaitable, isPromise } from '../awaitable.ts'
import { ServiceError, Unavailable } from '../errors.ts'
import { loopDelay } from '../observe/loop-delay.ts'
import type { Operation, Queue } from '../plugin/catalog.ts'

/** A running call, as the worker pool sees it. */
export interface RunningCall {
  /** The queue in which its functions wait for a thread. A product that is asked uses the queue of the asking call. */
  readonly queue: Queue
  /** Where the call comes from. A product that is asked gets the client of the asking call. */
  readonly client: string
  /** Stops the clock of the timeout while the call waits for a thread, until the returned function is called. */
  wait(): () => void
  /** Leaves the time that this meter counts out of the timeout, until the returned function is called. */
  loses(meter: Meter): () => void
}

/** Counts the milliseconds that a product could not use because the machine was busy with others. Never decreases. */
export type Meter = () => number

/** The property of a `Call` that holds its RunningCall. A copy with a spread has it too. */
export const RUNNING = Symbol('running')

/** Returns the running call behind a `Call`. Undefined for one that a plugin built itself, for example in a job. */
export function runningOf(
  call: { readonly [RUNNING]?: RunningCall; readonly id: string } | undefined,
): RunningCall | undefined {
  return call?.[RUNNING]
}

/** Who waits for a call. */
export interface Caller {
  /** The asking call, if another product asks. */
  readonly asking?: RunningCall | undefined
  /** Where the call comes from, as plugins read it. It may be made when it is first read, because few plugins do. */
  readonly client: string
  readonly hasLeft: boolean
  /**
   * Aborts when the caller leaves. It may be created when it is first read, because it costs more than a small call.
   */
  readonly signal: AbortSignal
  /** Calls `listener` when the caller leaves. Returns a function that removes the listener. */
  onLeave(listener: () => void): () => void
}

/** The client of calls that the gateway makes itself, for example in jobs. */
export const GATEWAY_CLIENT = 'gateway'

/** Returns a caller that leaves when the signal aborts. By default, its client is that of the asking call or the gateway. */
export function callerOf(signal: AbortSignal, asking?: RunningCall, client?: string): Caller {
  return new SignalCaller(signal, asking, client)
}

class SignalCaller implements Caller {
  readonly signal: AbortSignal
  readonly asking: RunningCall | undefined
  readonly #client: string | undefined

  constructor(signal: AbortSignal, asking?: RunningCall, client?: string) {
    this.signal = signal
    this.asking = asking
    this.#client = client
  }

  get client(): string {
    return this.#client ?? this.asking?.client ?? GATEWAY_CLIENT
  }

  get hasLeft(): boolean {
    return this.signal.aborted
  }

  onLeave(listener: () => void): () => void {
    this.signal.addEventListener('abort', listener, { once: true })
    return () => this.signal.removeEventListener('abort', listener)
  }
}

/** How many seconds of lost time are given back to a call at most. */
const MAX_LOST_SECONDS = 10
const RETRY_AFTER_SECONDS = 10
const OVERLOADED = 'The gateway is too busy to answer in time; nothing was charged.'

export interface TimeoutOptions extends Pick<Operation, 'timeoutSeconds' | 'queue'> {
  /** Counts the time that the product loses in every call, besides the delay of the event loop. */
  readonly lost?: Meter
  /** How many seconds of lost time are given back at most. Default: 10. */
  readonly maxLostSeconds?: number
}

/**
 * Runs the work of a call with a signal that aborts after `timeoutSeconds` or when the caller leaves. The call then
 * fails at once, and what becomes of the work is ignored. Work that returns a value at once needs neither timer nor
 * signal.
 * @throws ServiceError `product_timeout` if the work takes too long, or the caller leaves
 * @throws Unavailable if it takes too long because it lost more than `maxLostSeconds`
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
  /** The meters that run, each from when it was added, and what those that have ended counted. */
  readonly #losing = new Set<Meter>()
  #lostMs = 0

  constructor({ timeoutSeconds, queue, lost, maxLostSeconds = MAX_LOST_SECONDS }: TimeoutOptions, caller: Caller) {
    this.#seconds = timeoutSeconds
    this.#maxLostMs = maxLostSeconds * 1000
    this.#productLost = lost
    this.#caller = caller
    this.queue = caller.asking?.queue ?? queue
  }

  get client(): string {
    return this.#caller.client
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
    // The end of the wait, which the worker pool bounds, starts the timer again.
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
    // Before the signal aborts, because the work may then fail with an error of its own.
    this.#reject?.(this.#ended)
    this.#controller?.abort(this.#ended)
    return this.#ended
  }
}
