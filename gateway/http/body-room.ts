/** The memory and the disk that request bodies share, and who waits for it. */
import { InvalidInput, ServiceError, Unavailable } from '../errors.ts'

const MAX_WAIT_MS = 15_000
const RETRY_AFTER_SECONDS = 10

/** A part of memory or disk that bodies share. */
export class Share {
  readonly limit: number
  used = 0

  constructor(limit: number) {
    this.limit = limit
  }
}

/** The disk space that bodies share, and what each place has of it. */
export class DiskShare extends Share {
  readonly #limitOfPlace: number
  readonly #places = new Map<string, number>()

  constructor(limit: number, limitOfPlace: number) {
    super(limit)
    this.#limitOfPlace = limitOfPlace
  }

  /** Throws Unavailable if there is no room, or the place has used its part. */
  take(place: string, bytes: number): void {
    const own = (this.#places.get(place) ?? 0) + bytes
    if (own > this.#limitOfPlace) throw noRoom(undefined, ' from your address')
    if (this.used + bytes > this.limit) throw noRoom()
    this.used += bytes
    this.#places.set(place, own)
  }

  free(place: string, bytes: number): void {
    const own = (this.#places.get(place) ?? 0) - bytes
    this.used -= bytes
    if (own > 0) this.#places.set(place, own)
    else this.#places.delete(place)
  }
}

/** The memory of bodies whose calls run. It is granted in the order of asking; a single body may be larger than all of it. */
export class HeldMemory extends Share {
  readonly #maxWaitMs: number
  readonly #waiting: Hold[] = []

  constructor(limit: number, maxWaitMs = MAX_WAIT_MS) {
    super(limit)
    this.#maxWaitMs = maxWaitMs
  }

  /** Asks for memory for a body. It is granted in the order of asking, or refused with Unavailable after a while. */
  ask(size: number): Hold {
    const hold = new Hold(size)
    if (this.#waiting.length === 0 && this.#hasRoom(size)) this.#grant(hold)
    else {
      this.#waiting.push(hold)
      hold.timer = setTimeout(() => this.#withdraw(hold, noRoom()), this.#maxWaitMs)
    }
    return hold
  }

  /** Gives the memory of a body, or its place among those that wait, to the next ones. */
  release(hold: Hold): void {
    if (!hold.isGranted) return this.#withdraw(hold, incomplete())
    this.used -= hold.size
    this.#grantWaiting()
  }

  #withdraw(hold: Hold, reason: Error): void {
    const place = this.#waiting.indexOf(hold)
    if (place === -1) return
    this.#waiting.splice(place, 1)
    hold.refuse(reason)
    this.#grantWaiting()
  }

  #grant(hold: Hold): void {
    this.used += hold.size
    hold.grant()
  }

  #grantWaiting(): void {
    for (let next = this.#waiting[0]; next && this.#hasRoom(next.size); next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#grant(next)
    }
  }

  #hasRoom(size: number): boolean {
    return this.used === 0 || this.used + size <= this.limit
  }
}

/** The memory of one body that has arrived, or its place among those that wait for it. */
export class Hold {
  readonly size: number
  /** Resolves once there is memory. Rejects if the wait takes too long, or the body is released meanwhile. */
  readonly granted: Promise<void>
  isGranted = false
  /** Ends the wait. */
  timer: NodeJS.Timeout | undefined
  #resolve!: () => void
  #reject!: (error: Error) => void

  constructor(size: number) {
    this.size = size
    this.granted = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  grant(): void {
    clearTimeout(this.timer)
    this.isGranted = true
    this.#resolve()
  }

  refuse(reason: Error): void {
    clearTimeout(this.timer)
    this.#reject(reason)
  }
}

/** The refusal of a body that ended, or was released, too early. */
export function incomplete(): InvalidInput {
  return new InvalidInput([{ loc: ['body'], msg: 'The body ended before it was complete.', type: 'incomplete' }])
}

/** The refusal of a body for which there is no memory or disk. */
export function noRoom(cause?: unknown, whose = ''): ServiceError {
  const refusal = new Unavailable(
    `Too many large bodies arrive${whose} at the moment; nothing was charged.`,
    RETRY_AFTER_SECONDS,
  )
  return cause === undefined ? refusal : Object.assign(refusal, { cause })
}
