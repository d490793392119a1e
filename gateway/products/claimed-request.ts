/**
 * The proof that a caller sent that a purchase is theirs, for the handlers of built-in plugins that ask for it. It is
 * neither part of the plugin API nor a property of a call, because products have no use for the secrets of their
 * buyers.
 */
import type { ClaimedRequest } from '../payments/payment.ts'
import type { Handler } from '../plugin/plugin.ts'

const asking = new WeakSet<object>()
const claimed = new WeakMap<object, ClaimedRequest>()

/** Marks a handler that reads `claimedBy`, and returns it. */
export function readsClaim<Asking extends Handler<never>>(handler: Asking): Asking {
  asking.add(handler)
  return handler
}

/** Whether a handler was marked. */
export function isReadingClaim(handler: object): boolean {
  return asking.has(handler)
}

/** Keeps what the caller sent for as long as the call lasts. */
export function keepClaim(call: object, request: ClaimedRequest): void {
  claimed.set(call, request)
}

/** Returns what the caller sent to a marked handler. Null for a call of another product, which claims nothing. */
export function claimedBy(call: object): ClaimedRequest | null {
  return claimed.get(call) ?? null
}
