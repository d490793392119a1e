/** What the settlers of this method store before they send, in the JSON of the journal's column `intent`. */
import type { Hex } from '../../config/networks.ts'
import type { SubmittedPayment } from '../payment-method.ts'

/** A signed transaction of ours. */
export interface ChainIntent {
  readonly kind: 'chain'
  readonly transaction: Hex
  /** The signed transaction, to be sent again unchanged. */
  readonly raw: Hex
  readonly sender: Hex
  readonly senderNonce: number
  /** The first block that can hold it: logs are searched from here. */
  readonly fromBlock: number
  /** How many payments share the transaction. Then `raw` is empty, because each can be sent again alone. */
  readonly batch?: number
}

/** A request to a facilitator. */
export interface FacilitatorIntent {
  readonly kind: 'facilitator'
  readonly url: string
  readonly fromBlock: number | null
}

export type EvmIntent = ChainIntent | FacilitatorIntent

/** The intent of a payment of this method. Whichever settler stored it, the other may have to finish it. */
export function intentOf({ intent }: SubmittedPayment): EvmIntent | null {
  return intent as EvmIntent | null
}
