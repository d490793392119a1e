/** Limits requests per caller address and per token. The limit is generous, because indexers treat a 429 as an outage. */
import { isIPv6 } from 'node:net'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { RateLimited } from '../errors.ts'

export interface Limit {
  readonly requests: number
  readonly seconds: number
}

/** Length of an Ed25519 signature in base64url: 64 bytes. */
const SIGNATURE_LENGTH = 86

const DEFAULT_LIMIT: Limit = { requests: 600, seconds: 10 }

/** Counts a request. Rejects with RateLimited if the caller is over the limit. */
export type Limiter = (address: string, token: string | null) => Promise<void>

/** Creates a limiter per address and per token. Callers on the same machine are not limited. */
export function createLimiter({ requests, seconds }: Limit = DEFAULT_LIMIT): Limiter {
  const counts = new RateLimiterMemory({ points: requests, duration: seconds })
  return async (address, token) => {
    if (isLoopback(address)) return
    try {
      await counts.consume(bucketOf(address))
      // The signature identifies the token. The part before it can be very long.
      if (token !== null) await counts.consume(`token ${token.slice(-SIGNATURE_LENGTH)}`)
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection
      throw new RateLimited(`More than ${requests} requests in ${seconds} seconds.`, rejection.msBeforeNext / 1000)
    }
  }
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}

/**
 * Returns the key under which a caller is counted. An IPv6 customer usually holds a whole /64, so the key is the first
 * four groups: "2001:db8::1" becomes "2001:db8:0:0". Every loopback address is "loopback", and an IPv4 address that
 * arrived over IPv6 is the plain IPv4 address.
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
