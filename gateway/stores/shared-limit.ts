/**
 * A limit on what costs much and may turn out to be worth it: points are counted in advance, and taken back if it was. With
 * `peers` it holds for all processes together. It waits for what the others say, and while they cannot be reached, each
 * process counts for itself.
 */
import { createHash } from 'node:crypto'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { RateLimited } from '../errors.ts'
import type { CallTotal, Peers } from './peers.ts'

export interface SharedLimitOptions {
  /** Tells this limit from others of the same peers. */
  readonly name: string
  /** The most points that one caller may use within the window, which begins with the first of them. */
  readonly points: number
  readonly seconds: number
  /** Says in a sentence which limit was exceeded. */
  readonly message: string
  readonly peers?: Pick<Peers, 'addCalls'> | null
}

/** Points that were counted. */
export interface Counted {
  /** Takes them back. Does nothing once the window in which they were counted is over. */
  takeBack(): Promise<void>
}

export interface SharedLimit {
  /** Counts points of a caller, 1 if absent. Throws RateLimited above the limit. */
  count(caller: string, points?: number): Promise<Counted>
}

/** How the peers know what is counted for a caller. Neither payers nor addresses leave the process. */
export function sharedName(limit: string, caller: string): string {
  return `${limit}-${createHash('sha256').update(caller).digest('base64url').slice(0, 22)}`
}

/** Creates a limit. */
export function createSharedLimit({ name, points: limit, seconds, message, peers }: SharedLimitOptions): SharedLimit {
  const counts = new RateLimiterMemory({ points: limit, duration: seconds })
  const tooMany = (ms: number): RateLimited => new RateLimited(message, ms / 1000)

  /** Adds to what all processes counted. Null: there are no others, or they cannot be reached. */
  async function tell(caller: string, calls: number, msLeft: number): Promise<CallTotal | null> {
    if (!peers) return null
    const totals = await peers.addCalls([{ caller: sharedName(name, caller), calls, msLeft }]).catch(() => null)
    return totals?.[0] ?? null
  }

  /**
   * Takes points back from the windows that they were counted in, this process's and that of all. Taken from a later window,
   * they would admit more there.
   */
  async function takeBack(caller: string, points: number, ownEnd: number, sharedEnd: number): Promise<void> {
    const now = Date.now()
    // The time left bounds the window that begins if the other one ends meanwhile.
    await Promise.all([
      ownEnd > now && counts.reward(caller, points, { customDuration: (ownEnd - now) / 1000 }),
      sharedEnd > now && tell(caller, -points, sharedEnd - now),
    ])
  }

  return {
    async count(caller, points = 1) {
      const own = await counts.consume(caller, points).catch((rejection: unknown) => {
        throw rejection instanceof RateLimiterRes ? tooMany(rejection.msBeforeNext) : rejection
      })
      const ownEnd = Date.now() + own.msBeforeNext
      const total = await tell(caller, points, seconds * 1000)
      const sharedEnd = total ? Date.now() + total.msLeft : 0
      if (!total || total.calls <= limit) return { takeBack: () => takeBack(caller, points, ownEnd, sharedEnd) }
      // Refused calls do not count.
      await takeBack(caller, points, ownEnd, sharedEnd)
      throw tooMany(total.msLeft)
    },
  }
}
