/**
 * Whether calls were charged, for products that keep something of each of them (`context.charged`). A handler runs before its
 * payment is settled, so only the journal knows what became of it.
 */
import type { CallPayment, Journal } from './journal/journal.ts'
import { BLOCK_TIME_LAG_SECONDS } from './payments-in-progress.ts'

interface ChargedCallsParts {
  readonly journal: Pick<Journal, 'ofCalls'>
  /** The clock of payments. */
  readonly now: () => Date
}

/**
 * Returns for each call true if it was charged, false if it never will be. Open ones are left out. A call without a payment
 * is never charged, nor is one whose payment another call has used since.
 */
export type ChargedCalls = (callIds: readonly string[]) => Promise<ReadonlyMap<string, boolean>>

/** Creates the look-up. It rejects if the journal cannot be read. */
export function createChargedCalls({ journal, now }: ChargedCallsParts): ChargedCalls {
  return async (callIds) => {
    const charged = new Map(callIds.map((id) => [id, false]))
    const nowSeconds = now().getTime() / 1000
    for (const payment of await journal.ofCalls(callIds)) {
      const isCharged = wasCharged(payment, nowSeconds)
      if (isCharged === null) charged.delete(payment.callId)
      else charged.set(payment.callId, isCharged)
    }
    return charged
  }
}

/** Null while nobody can know. */
function wasCharged({ state, expiresAt }: CallPayment, nowSeconds: number): boolean | null {
  switch (state) {
    case 'settled':
    case 'owed':
      return true
    case 'released':
      // Until then its buyer may come back for an answer that was kept, and others may send what was signed.
      return Number(expiresAt) + BLOCK_TIME_LAG_SECONDS < nowSeconds ? false : null
    default:
      // A reversed payment may be mined again.
      return null
  }
}
