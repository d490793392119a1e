/** What a payer is told of the settlement, in both wire forms. */
import type { Hex, Network } from './payment.ts'

export interface Receipt {
  readonly success: boolean
  /** "" where nothing was sent. */
  readonly transaction: Hex | ''
  readonly network: Network
  readonly payer: Hex
  readonly amount: bigint
  readonly errorReason?: string
  readonly version: 1 | 2
}
