/**
 * Limits requests per caller address and per token, separately for free routes, sales and large messages. The limit is
 * generous, because indexers treat a 429 as an outage.
 *
 * A caller's window begins with its first call. Processes that know of each other share the count: each counts what it
 * admits, reports it to the others in the background, and adds their reports. A call never waits for that. Until a
 * process has heard of the others it may admit calls that they would refuse: at most what arrives between two
 * exchanges, which `SHARE_MS` and a tenth of the limit bound.
 */
import { createHash } from 'node:crypto'
import { RateLimited } from '../errors.ts'
import { makeRoom, type Peers } from '../stores/peers.ts'
import { type CallerAddress, limitedPlaceOf } from './caller-address.ts'

export interface Limit {
  readonly requests: number
  readonly seconds: number
}

/** Counts a request. Throws RateLimited if the caller is over the limit. */
export type Limiter = (from: CallerAddress, token: string | null) => void

/**
 * The limits of every caller. They are counted separately, so that a flood of free requests from an address that
 * several callers share does not keep the others from buying, or the other way round.
 */
export interface Limits {
  /** Documents, pages, forms, free routes and tools, and everything that is not found. */
  readonly free: Limiter
  /** Priced routes and tools: quotes, purchases, and calls with a token. */
  readonly sales: Limiter
  /** Messages that are expensive to read before it is known what they ask for. They also count as one of the others. */
  readonly largeMessages: Limiter
  /** Small chunks of request bodies, many at a time. */
  readonly chunks: Limiter
}

/** Creates the limits, each of the same size. With `peers` they hold for all processes together. */
export function createLimits(limit?: Limit, peers?: Peers | null): Limits {
  const create = (name: keyof Limits): Limiter => createLimiter(limit, peers, REAL_TIME, name)
  return {
    free: create('free'),
    sales: create('sales'),
    largeMessages: create('largeMessages'),
    chunks: create('chunks'),
  }
}

/** Replaced by tests: the clock, in milliseconds that never decrease, and the timer. */
export interface LimiterTime {
  readonly now: () => number
  readonly after: (ms: number, run: () => void) => void
}

/** Length of an Ed25519 signature in base64url: 64 bytes. */
const SIGNATURE_LENGTH = 86

const DEFAULT_LIMIT: Limit = { requests: 600, seconds: 10 }
/** A call is reported to the other processes after this time at the latest. */
const SHARE_MS = 100
/** A caller that has used this part of its limit since the last report is reported at once. */
const SHARE_PART = 0.1

const REAL_TIME: LimiterTime = {
  now: () => performance.now(),
  after: (ms, run) => void setTimeout(run, ms).unref(),
}

/** The calls of one caller in its window. */
interface Count {
  readonly caller: string
  /** Calls that this process has admitted. */
  own: number
  /** Admitted calls not yet reported to the other processes. */
  unreported: number
  /** Admitted calls known to be part of the shared total. */
  shared: number
  /** Calls admitted by the other processes, as last heard. */
  others: number
  endsAt: number
}

/**
 * Creates a limiter per address and per token. Callers on the same machine are not limited, unless they may be a proxy.
 * @param peers share the limit; while they cannot be reached, each process counts alone
 * @param name tells this limit from others of the same peers
 */
export function createLimiter(
  { requests, seconds }: Limit = DEFAULT_LIMIT,
  peers: Peers | null = null,
  time: LimiterTime = REAL_TIME,
  name = '',
): Limiter {
  const counts = new Counts({ requests, seconds }, peers, time, name)
  return (from, token) => {
    const place = limitedPlaceOf(from)
    if (place === null) return
    const ofAddress = counts.of(place)
    counts.admit(ofAddress)
    if (token === null) return counts.add(ofAddress)
    // The signature identifies the token. The part before it can be very long. Anybody can make tokens up, so one that comes
    // with a refused call gets no count: too many would push out those of others.
    const ofToken = counts.of(`token ${token.slice(-SIGNATURE_LENGTH)}`)
    counts.admit(ofToken)
    counts.add(ofAddress)
    counts.add(ofToken)
  }
}

/** The counts of all callers. */
class Counts {
  readonly #limit: Limit
  readonly #windowMs: number
  readonly #tellAt: number
  readonly #peers: Peers | null
  readonly #time: LimiterTime
  /** Tells this limit from others at the peers. */
  readonly #name: string
  /** By caller, in the order in which their windows began. */
  readonly #counts = new Map<string, Count>()
  #unreported: Count[] = []
  #isTelling = false
  #isTimerSet = false

  constructor(limit: Limit, peers: Peers | null, time: LimiterTime, name: string) {
    this.#name = name
    this.#limit = limit
    this.#windowMs = limit.seconds * 1000
    this.#tellAt = Math.ceil(limit.requests * SHARE_PART)
    this.#peers = peers
    this.#time = time
  }

  /** The present window of a caller. */
  of(caller: string): Count {
    const now = this.#time.now()
    const known = this.#counts.get(caller)
    if (known && known.endsAt > now) return known
    this.#counts.delete(caller)
    makeRoom(this.#counts, now)
    const count = { caller, own: 0, unreported: 0, shared: 0, others: 0, endsAt: now + this.#windowMs }
    this.#counts.set(caller, count)
    return count
  }

  /** Throws RateLimited if the caller has used its limit. A refused call does not count. */
  admit({ own, others, endsAt }: Count): void {
    const { requests, seconds } = this.#limit
    if (own + others < requests) return
    const ms = Math.max(0, endsAt - this.#time.now())
    throw new RateLimited(`More than ${requests} requests in ${seconds} seconds.`, ms / 1000)
  }

  add(count: Count): void {
    count.own += 1
    if (!this.#peers) return
    count.unreported += 1
    if (count.unreported === 1) this.#unreported.push(count)
    if (this.#isTelling) return
    if (count.unreported >= this.#tellAt) void this.#tell(this.#peers)
    else this.#tellLater(this.#peers)
  }

  #tellLater(peers: Peers): void {
    if (this.#isTimerSet) return
    this.#isTimerSet = true
    this.#time.after(SHARE_MS, () => {
      this.#isTimerSet = false
      if (!this.#isTelling && this.#unreported.length > 0) void this.#tell(peers)
    })
  }

  /** Reports what was counted, and takes over what the others have counted. One exchange at a time. */
  async #tell(peers: Peers): Promise<void> {
    this.#isTelling = true
    const told = this.#unreported.map((count) => ({ count, calls: count.unreported }))
    this.#unreported = []
    for (const { count } of told) count.unreported = 0
    const now = this.#time.now()
    const added = told.map(({ count, calls }) => {
      return { caller: hashOf(`${this.#name} ${count.caller}`), calls, msLeft: Math.max(1, count.endsAt - now) }
    })
    try {
      const totals = await peers.addCalls(added)
      const heardAt = this.#time.now()
      for (const [at, { count, calls }] of told.entries()) {
        const total = totals[at]
        if (total) this.#hear(count, calls, total.calls, heardAt + total.msLeft)
      }
    } catch {
      // This process counts for itself. A failed report is not repeated, because it may have arrived.
    }
    this.#isTelling = false
    if (this.#unreported.some(({ unreported }) => unreported >= this.#tellAt)) void this.#tell(peers)
    else if (this.#unreported.length > 0) this.#tellLater(peers)
  }

  /** Takes over the shared total of a window, and its end. */
  #hear(count: Count, told: number, total: number, endsAt: number): void {
    // Another process has begun the next window before this one has ended here.
    if (endsAt > count.endsAt + this.#windowMs / 10) {
      count.own = told + count.unreported
      count.shared = 0
    }
    count.shared += told
    count.others = Math.max(0, total - count.shared)
    count.endsAt = endsAt
  }
}

/** Neither addresses nor tokens leave the process. */
function hashOf(caller: string): string {
  return createHash('sha256').update(caller).digest('base64url').slice(0, 22)
}
