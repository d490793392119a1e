/**
 * Admission to the queues of heavy work. Each call of an operation with `cost_per_megabyte` counts as the time that it
 * will cost a worker thread, from when its body has arrived until the product has answered. A body that has not arrived
 * takes no room, whatever size it announces. A call for which there is no room is refused at once rather than after a
 * wait: nothing is charged, and the product's circuit breaker does not count it. Calls of one queue take no room in the
 * other.
 */
import { Unavailable } from '../errors.ts'
import type { Operation, Queue } from '../plugin/catalog.ts'

/** The fields of an operation that decide about its admission. */
type QueuedOperation = Pick<Operation, 'queue' | 'costPerMegabyte' | 'maxBytes'>

/** A call is refused if the calls before it may take longer than this, in seconds of each thread. */
const MAX_SECONDS: Readonly<Record<Queue, number>> = { paid: 15, free: 16 }
/** The same for the calls of one address. Paid work may fill its queue. */
const MAX_SECONDS_OF_ADDRESS: Readonly<Record<Queue, number>> = { paid: 15, free: 8 }
/** No further body is read while more than this part is taken: the rest is for those that are arriving. */
const OPEN_PART = 0.75
const MEGABYTE = 1_000_000
/** The least that a body counts as. */
const MIN_BYTES = 50_000
const MAX_RETRY_SECONDS = 30

/** The cost of the calls in a queue, in seconds of a thread. */
class Taken {
  all = 0
  readonly #byAddress = new Map<string, number>()

  of(address: string): number {
    return this.#byAddress.get(address) ?? 0
  }

  add(address: string, seconds: number): void {
    this.all = rounded(this.all + seconds)
    const own = rounded(this.of(address) + seconds)
    if (own === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, own)
  }
}

/** The queues in front of a pool of worker threads. */
export class WorkQueues {
  /** How many threads work for each queue. */
  readonly #threads: Readonly<Record<Queue, number>>
  readonly #taken: Readonly<Record<Queue, Taken>> = { paid: new Taken(), free: new Taken() }

  /** @param threads the size of the pool; free work never has the last thread */
  constructor(threads: number) {
    this.#threads = { paid: threads, free: Math.max(1, threads - 1) }
  }

  /** Cost of the calls in each queue, in seconds of a thread. */
  get taken(): Readonly<Record<Queue, number>> {
    return { paid: this.#taken.paid.all, free: this.#taken.free.all }
  }

  /**
   * Throws Unavailable if a call whose body has arrived cannot be admitted now. An empty queue admits every call.
   * @param address where it comes from
   * @param bytes the size of its body
   */
  assertRoom(operation: QueuedOperation, address: string, bytes: number): void {
    const { queue, costPerMegabyte } = operation
    if (costPerMegabyte === 0) return
    const taken = this.#taken[queue]
    const cost = costOf(operation, bytes)
    const own = taken.of(address)
    if (own > 0) this.#assertAtMost(queue, own + cost, MAX_SECONDS_OF_ADDRESS[queue], ' from your address')
    if (taken.all > 0) this.#assertAtMost(queue, taken.all + cost, MAX_SECONDS[queue])
  }

  /**
   * Returns the place of a call whose body is going to be read, which takes no room yet. Null if the operation has no
   * cost. Throws Unavailable if the queue is so full that reading it would probably be in vain.
   * @param address where it comes from
   */
  open(operation: QueuedOperation, address: string): Place | null {
    const { queue, costPerMegabyte } = operation
    if (costPerMegabyte === 0) return null
    const taken = this.#taken[queue]
    this.#assertAtMost(queue, taken.of(address), MAX_SECONDS_OF_ADDRESS[queue] * OPEN_PART, ' from your address')
    this.#assertAtMost(queue, taken.all, MAX_SECONDS[queue] * OPEN_PART)
    return new Place(this, taken, operation, address)
  }

  /** Admits a call whose body has arrived, until it leaves, or throws Unavailable. Null if the operation has no cost. */
  enter(operation: QueuedOperation, address: string, bytes: number): Place | null {
    if (operation.costPerMegabyte === 0) return null
    const place = new Place(this, this.#taken[operation.queue], operation, address)
    place.take(bytes)
    return place
  }

  #assertAtMost(queue: Queue, cost: number, most: number, whose = ''): void {
    const threads = this.#threads[queue]
    const excess = cost - most * threads
    if (excess <= 0) return
    const seconds = Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(excess / threads)))
    const message = `Too much ${queue} work is waiting${whose}; nothing was charged. Wait ${seconds} s.`
    throw new Unavailable(message, seconds)
  }
}

/** The place of one call in its queue. */
export class Place {
  readonly #queues: WorkQueues
  readonly #taken: Taken
  readonly #operation: QueuedOperation
  readonly #address: string
  #cost = 0

  /** @param taken what is taken of the queue of the operation */
  constructor(queues: WorkQueues, taken: Taken, operation: QueuedOperation, address: string) {
    this.#queues = queues
    this.#taken = taken
    this.#operation = operation
    this.#address = address
  }

  /** Takes room for a body that has arrived, or throws Unavailable. Does nothing the second time. */
  take(bytes: number): void {
    if (this.#cost > 0) return
    this.#queues.assertRoom(this.#operation, this.#address, bytes)
    this.#cost = costOf(this.#operation, bytes)
    this.#taken.add(this.#address, this.#cost)
  }

  leave(): void {
    this.#taken.add(this.#address, -this.#cost)
    this.#cost = 0
  }
}

/** The seconds of a thread that a call is expected to take. */
function costOf({ costPerMegabyte, maxBytes }: QueuedOperation, bytes: number): number {
  return (costPerMegabyte * Math.max(MIN_BYTES, Math.min(bytes, maxBytes))) / MEGABYTE
}

/** Sums of fractions leave a rest of nothing. */
const rounded = (seconds: number): number => (seconds < 1e-6 ? 0 : seconds)
