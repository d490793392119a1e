/**
 * What a caller sent to prove that a purchase is his, on its way to a handler. Only built-in plugins read it. It is no part
 * of the plugin API: a product has no use for the secrets of its buyers.
 */
import type { ClaimedRequest } from '../payments/presented-payment.ts'

/** The property of a call that holds it. */
export const CLAIMED = Symbol('claimed')

/** Returns what the caller sent. Null for a call of another product, which claims nothing. */
export function claimedBy(call: object): ClaimedRequest | null {
  return (call as { readonly [CLAIMED]?: ClaimedRequest })[CLAIMED] ?? null
}
