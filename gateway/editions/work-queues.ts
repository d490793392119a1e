/**
 * Admission to the queues of heavy work. Each call of an operation with `cost_per_megabyte` counts as the time that it
 * will cost a worker thread, from its admission until the product has answered. A call for which there is no room is
 * refused at once rather than after a wait: nothing is charged, and the product's circuit breaker does not count it.
 * Calls of one queue take no room in the other.
 */
import type { Awaitable } from '../awaitable.ts'
import { Unavailable } from '../errors.ts'
import type { Operation, Queue } from '../plugin/catalog.ts'

/** The fields of an operation that decide about its admission. */
type QueuedOperation = Pick<Operation, 'queue' | 'costPerMegabyte' | 'maxBytes'>

/** A call is refused if the calls before it may take longer than this, in seconds of each thread. */
const MAX_SECONDS: Readonly<Record<Queue, number>> = { paid: 15, free: 8 }
/** How long a request keeps its place while it is being read, so that slow senders take no place from others. */
const READ_SECONDS = 10
const MEGABYTE = 1_000_000
/** The least that a body counts as. */
const MIN_BYTES = 50_000
const MAX_RETRY_SECONDS = 30

/** The queues in front of a pool of worker threads. */
export class WorkQueues {
  /** How many threads work for each queue. */
  readonly #threads: Readonly<Record<Queue, number>>
  /** The cost of the calls in each queue, in seconds of a thread. */
  readonly #taken: Record<Queue, number> = { paid: 0, free: 0 }

  readonly readSeconds: number

  /** @param threads the size of the pool; free work never has the last thread */
  constructor(threads: number, { readSeconds = READ_SECONDS } = {}) {
    this.readSeconds = readSeconds
    this.#threads = { paid: threads, free: Math.max(1, threads - 1) }
  }

  /**
   * Throws Unavailable if a call cannot be admitted now. An empty queue admits every call.
   * @param bytes the size of its body as announced, or Infinity
   */
  assertRoom(operation: QueuedOperation, bytes: number): void {
    const { queue, costPerMegabyte } = operation
    if (costPerMegabyte === 0 || this.#taken[queue] === 0) return
    const threads = this.#threads[queue]
    const excess = this.#taken[queue] + costOf(operation, bytes) - MAX_SECONDS[queue] * threads
    if (excess <= 0) return
    const seconds = Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(excess / threads)))
    throw new Unavailable(`Too much ${queue} work is waiting; nothing was charged. Wait ${seconds} s.`, seconds)
  }

  /** Admits a call until it leaves, or throws Unavailable. Null if the operation has no cost. */
  enter(operation: QueuedOperation, bytes: number): Place | null {
    if (operation.costPerMegabyte === 0) return null
    this.assertRoom(operation, bytes)
    return new Place(this, operation, bytes, this.#taken)
  }
}

/** The place of one call in its queue. */
export class Place {
  readonly #queues: WorkQueues
  readonly #operation: QueuedOperation
  readonly #bytes: number
  readonly #taken: Record<Queue, number>
  #cost = 0

  /** @param taken the cost of the calls in each queue, in seconds of a thread */
  constructor(queues: WorkQueues, operation: QueuedOperation, bytes: number, taken: Record<Queue, number>) {
    this.#queues = queues
    this.#operation = operation
    this.#bytes = bytes
    this.#taken = taken
    this.#take()
  }

  /**
   * Reads the request. If that takes long, the place is given up meanwhile. Throws Unavailable if there is no room
   * afterwards.
   */
  async read<Value>(read: () => Awaitable<Value>): Promise<Value> {
    const timer = setTimeout(() => this.leave(), this.#queues.readSeconds * 1000)
    try {
      const value = await read()
      if (this.#cost > 0) return value
      this.#queues.assertRoom(this.#operation, this.#bytes)
      this.#take()
      return value
    } finally {
      clearTimeout(timer)
    }
  }

  leave(): void {
    const { queue } = this.#operation
    const left = this.#taken[queue] - this.#cost
    // Sums of fractions are rounded.
    this.#taken[queue] = left < 1e-6 ? 0 : left
    this.#cost = 0
  }

  #take(): void {
    this.#cost = costOf(this.#operation, this.#bytes)
    this.#taken[this.#operation.queue] += this.#cost
  }
}

/** The seconds of a thread that a call is expected to take. */
function costOf({ costPerMegabyte, maxBytes }: QueuedOperation, bytes: number): number {
  return (costPerMegabyte * Math.max(MIN_BYTES, Math.min(bytes, maxBytes))) / MEGABYTE
}
