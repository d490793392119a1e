/** What is asked for a payment, and why one is refused: the words of x402 that every payment method shares. */
import type { Hex, Network } from '../config/networks.ts'

/** What is asked for one operation on one network: version-free, both wire forms are built from it. */
export interface PaymentRequirements {
  readonly scheme: 'exact'
  readonly network: Network
  readonly amount: bigint
  readonly payTo: Hex
  readonly maxTimeoutSeconds: number
}

/** Why a payment is refused: an x402 reason (reference: x402 spec v2 section 9) and a sentence with advice. */
export interface Refusal {
  readonly reason: string
  readonly message: string
}
