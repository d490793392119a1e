/**
 * Makes callers wait who send wrong operator tokens. An address may be wrong a few times; then each further wrong token
 * doubles its wait. While many addresses are wrong, each waits from its first wrong token on. An address that was never wrong
 * does not wait, so the operator gets in whatever others send. Each process counts for itself.
 */
import { LRUCache } from 'lru-cache'
import { RateLimited } from '../errors.ts'
import { type CallerAddress, placeOf } from './caller-address.ts'

/** So many wrong tokens of an address are free. The last of them brings a wait of a second. */
const FREE = 5
const LONGEST_WAIT_MS = 15 * 60_000
const FORGOTTEN_AFTER_MS = 24 * 3600_000
/** So many wrong tokens of all addresses within a quarter of an hour are a flood. */
const FLOOD = 100
const FLOOD_WINDOW_MS = 15 * 60_000
/** In a flood, a wrong token counts as if its address had sent so many before: the first one brings a wait of 64 seconds. */
const MORE_IN_FLOOD = 10
/** So many addresses are remembered: those that sent a token last. */
const MAX_PLACES = 10_000

interface Failures {
  readonly count: number
  /** The last wrong token. It is no new guess if it comes again, as from a program that has a former token. */
  readonly last: string
  readonly at: number
  readonly waitsUntil: number
}

/** The wrong operator tokens of each address. */
export class LoginLimit {
  readonly #now: () => Date
  readonly #failures = new LRUCache<string, Failures>({ max: MAX_PLACES })
  readonly #flood = { count: 0, endsAt: 0 }

  constructor(now: () => Date) {
    this.#now = now
  }

  /** Throws RateLimited if the caller has to wait before it may send another token. */
  assertMayTry(from: CallerAddress): void {
    const ms = (this.#failures.get(placeKey(from))?.waitsUntil ?? 0) - this.#now().getTime()
    if (ms <= 0) return
    throw new RateLimited(
      'Too many wrong operator tokens came from this address, so none is checked for now.',
      ms / 1000,
    )
  }

  /** Forgets the wrong tokens of a caller who has sent the right one. */
  succeeded(from: CallerAddress): void {
    this.#failures.delete(placeKey(from))
  }

  /** Counts a wrong token. `hash` tells tokens apart. */
  failed(from: CallerAddress, hash: string): void {
    const key = placeKey(from)
    const at = this.#now().getTime()
    const known = this.#failures.get(key)
    if (known?.last === hash) return
    const count = 1 + (known && at - known.at < FORGOTTEN_AFTER_MS ? known.count : 0)
    const counted = count + (this.#isFlood(at) ? MORE_IN_FLOOD : 0)
    const waitMs = counted < FREE ? 0 : Math.min(LONGEST_WAIT_MS, 1000 * 2 ** (counted - FREE))
    this.#failures.set(key, { count, last: hash, at, waitsUntil: at + waitMs })
  }

  /** Counts a wrong token of any address. Returns true if there have been too many before. */
  #isFlood(at: number): boolean {
    const flood = this.#flood
    if (at >= flood.endsAt) Object.assign(flood, { count: 0, endsAt: at + FLOOD_WINDOW_MS })
    flood.count += 1
    return flood.count > FLOOD
  }
}

/** Callers of a proxy that is not named count together, but not with the machine that the proxy runs on. */
function placeKey({ address, isKnown }: CallerAddress): string {
  return isKnown ? placeOf(address) : `behind ${placeOf(address)}`
}
