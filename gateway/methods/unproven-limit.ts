/** Limits how often a settler checks payments that could not be proved offline: enough for contract wallets, not for a flood. */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ServiceError } from '../errors.ts'

const SECONDS = 60
const PER_PAYER = 60
const TOGETHER = 1_200

/** Returns a function that admits one check for a payer, or throws ServiceError `rate_limited`. */
export function createUnprovenLimit(): (payer: string) => Promise<void> {
  const together = new RateLimiterMemory({ points: TOGETHER, duration: SECONDS })
  const byPayer = new RateLimiterMemory({ points: PER_PAYER, duration: SECONDS })
  return async (payer) => {
    try {
      await byPayer.consume(payer)
      await together.consume('all')
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      const wait = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000))
      throw new ServiceError('rate_limited', `Too many signatures that only the chain can judge. Wait ${wait} s.`, {
        headers: { 'retry-after': String(wait) },
      })
    }
  }
}
