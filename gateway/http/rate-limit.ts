/** Rate limits by caller's address and token: generous, since indexers take a 429 for a dead service. */
import { isIPv6 } from 'node:net'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ServiceError } from '../errors.ts'

export interface Limit {
  readonly requests: number
  readonly seconds: number
}

/** Characters of an Ed25519 signature in base64url. */
const SIGNATURE = 86

export const DEFAULT_LIMIT: Limit = { requests: 600, seconds: 10 }

/** Admits a request or throws ServiceError rate_limited (429) with Retry-After. */
export type Limiter = (address: string, token: string | null) => Promise<void>

/** Counts requests per address, and per token, and window. Callers on this very machine are not counted. */
export function createLimiter({ requests, seconds }: Limit = DEFAULT_LIMIT): Limiter {
  const counts = new RateLimiterMemory({ points: requests, duration: seconds })
  return async (address, token) => {
    if (isLoopback(address)) return
    try {
      await counts.consume(bucketOf(address))
      // Its signature names it; what stands before could be pages long.
      if (token !== null) await counts.consume(`token ${token.slice(-SIGNATURE)}`)
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      const wait = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000))
      const message = `More than ${requests} requests in ${seconds} seconds. Wait ${wait} s.`
      throw new ServiceError('rate_limited', message, { headers: { 'retry-after': String(wait) } })
    }
  }
}

export function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}

/**
 * What counts as one caller. An IPv6 customer holds a whole /64, so it is the first four groups: "2001:db8::1" is
 * "2001:db8:0:0". This machine is one by whatever name, and so is an IPv4 address that came in over IPv6.
 */
export function bucketOf(address: string): string {
  if (isLoopback(address)) return 'loopback'
  if (address.startsWith('::ffff:')) return address.slice('::ffff:'.length)
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const before = head.split(':').filter(Boolean)
  const after = (tail ?? '').split(':').filter(Boolean)
  const zeros = tail === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}
