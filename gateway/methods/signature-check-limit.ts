/**
 * Limits checks of signatures that need a call to the chain, i.e. those of contract wallets. The limits leave room for
 * real contract wallets and stop a flood of invalid signatures.
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { RateLimited } from '../errors.ts'

const WINDOW_SECONDS = 60
const CHECKS_PER_PAYER = 60
const CHECKS_IN_TOTAL = 1_200

/** Returns a function that admits one check for a payer, or throws RateLimited. */
export function createSignatureCheckLimit(): (payer: string) => Promise<void> {
  const total = new RateLimiterMemory({ points: CHECKS_IN_TOTAL, duration: WINDOW_SECONDS })
  const byPayer = new RateLimiterMemory({ points: CHECKS_PER_PAYER, duration: WINDOW_SECONDS })
  return async (payer) => {
    try {
      await byPayer.consume(payer)
      await total.consume('all')
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection
      throw new RateLimited('Too many signatures that must be checked on the chain.', rejection.msBeforeNext / 1000)
    }
  }
}
