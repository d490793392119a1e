/** The record that a settler of this method stores before it sends a payment: JSON in the journal's column `intent`. */
import type { Hex } from '../../config/networks.ts'
import type { SubmittedPayment } from '../payment-method.ts'

/** A transaction signed with our gas key. */
export interface ChainIntent {
  readonly kind: 'chain'
  readonly transaction: Hex
  /** The signed transaction, so that it can be sent again unchanged. */
  readonly raw: Hex
  readonly sender: Hex
  readonly senderNonce: number
  /** The first block that can contain it. Logs are searched from here. */
  readonly fromBlock: number
  /** The payment has to outlast a rollback of CONFIRM_BLOCKS: it is final one block deeper, and at this depth at the earliest. */
  readonly minBlocks?: number
  /** How many payments share the transaction. `raw` is then "0x", because each payment is resent on its own. */
  readonly batch?: number
}

/** A request to a facilitator. */
export interface FacilitatorIntent {
  readonly kind: 'facilitator'
  readonly url: string
  readonly fromBlock: number | null
  readonly minBlocks?: number
  /** The x402 version that the payer used. Absent in rows of earlier releases. */
  readonly version?: 1 | 2
}

export type EvmIntent = ChainIntent | FacilitatorIntent

/**
 * The intent of a payment of this method. A chain settler may have to finish what a facilitator started, and vice
 * versa.
 */
export function intentOf({ intent }: SubmittedPayment): EvmIntent | null {
  return intent as EvmIntent | null
}
