/**
 * Limits checks of signatures that need a call to the chain, i.e. those of contract wallets. The limits leave room for
 * real contract wallets and stop a flood of invalid signatures.
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { ServiceError } from '../errors.ts'

const WINDOW_SECONDS = 60
const CHECKS_PER_PAYER = 60
const CHECKS_IN_TOTAL = 1_200

/** Returns a function that admits one check for a payer, or throws ServiceError `rate_limited`. */
export function createSignatureCheckLimit(): (payer: string) => Promise<void> {
  const total = new RateLimiterMemory({ points: CHECKS_IN_TOTAL, duration: WINDOW_SECONDS })
  const byPayer = new RateLimiterMemory({ points: CHECKS_PER_PAYER, duration: WINDOW_SECONDS })
  return async (payer) => {
    try {
      await byPayer.consume(payer)
      await total.consume('all')
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      const wait = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000))
      throw new ServiceError('rate_limited', `Too many signatures that must be checked on the chain. Wait ${wait} s.`, {
        headers: { 'retry-after': String(wait) },
      })
    }
  }
}
