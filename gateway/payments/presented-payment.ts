/** A payment as it comes with one request, and what tells its caller from others. */
import { createHash } from 'node:crypto'
import type { DecodedPayment } from '../methods/payment-method.ts'

/** What tells one caller from another. */
export interface Caller {
  /** The payer's own name for this purchase. */
  readonly identifier: string | null
  /** Digest of where the call comes from. */
  readonly place: string | null
}

/** @param client an IPv4 address, or the /64 of an IPv6 one */
export function placeOf(client: string): string {
  return createHash('sha256').update(`bought from ${client}`).digest('hex').slice(0, 32)
}

/** A payment as presented with one request, bound to that request's fingerprint. */
export interface PresentedPayment extends Caller {
  readonly payment: DecodedPayment
  readonly fingerprint: string
  readonly callId: string
  readonly signal: AbortSignal
}
