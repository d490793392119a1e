/**
 * The `limit` of an operation: how many calls one buyer may make in each minute, hour or day. A buyer is the wallet that
 * pays, or that bought the access token. A payment is checked and reserved first, so that nobody can use up the calls of
 * another wallet, and a call over the limit ends before the product works and before anything is charged. What was not
 * answered does not count.
 */
import { PER } from '../catalog/call-limits.ts'
import { RateLimited, ServiceError, Unavailable } from '../errors.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { CallCounts } from '../stores/call-counts.ts'
import type { Caller } from '../workers/timeout.ts'

interface LimitParts {
  readonly counts: CallCounts
  readonly log: Logger
}

/** A call of a buyer that was counted. */
export interface CountedCall {
  /** Takes the call back after it failed, unless it may still be answered: a later repeat of its payment is not counted. */
  failed(error: unknown): Promise<void>
}

/**
 * Counts a call of a buyer. Null if the operation has no limit.
 * @throws RateLimited above the limit
 * @throws Unavailable if the call cannot be counted
 */
export async function countBuyer(
  { counts, log }: LimitParts,
  { id, limit }: Operation,
  { buyer, caller }: { readonly buyer: string; readonly caller: Pick<Caller, 'hasLeft'> },
): Promise<CountedCall | null> {
  if (limit === null) return null
  const counted = await counts.count(`limit ${id}`, buyer.toLowerCase(), limit).catch((error: unknown) => {
    log.warn({ err: error, operation: id }, 'a call could not be counted against the limit of its buyer')
    throw new Unavailable('The calls of this wallet cannot be counted at the moment; nothing was charged.', 5)
  })
  if (!counted.isWithin)
    throw new RateLimited(
      `${limit.calls} calls ${PER[limit.per]} of one wallet are sold here at most; nothing was charged.`,
      counted.renewsInSeconds,
    )
  return {
    async failed(error) {
      const isPending = error instanceof ServiceError && error.code === 'settlement_pending'
      // The answer may be kept for a repeat of the payment.
      if (isPending || caller.hasLeft) return
      await counted
        .giveBack()
        .catch((thrown: unknown) => log.warn({ err: thrown, operation: id }, 'a failed call was counted'))
    },
  }
}
