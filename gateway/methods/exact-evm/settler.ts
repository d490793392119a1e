/** The only road to the chain: an x402 facilitator over HTTP, or the chain itself. */
import type { Commitment } from '../../payments/in-flight.ts'
import type { Intent, PaymentPayload, PaymentRecord, PaymentRequirements, Refusal } from '../../payments/payment.ts'
import type { Hex, Network } from '../../config/networks.ts'
import type { NodeState } from './nodes/nodes.ts'

/**
 * How far a payment must be before its answer leaves: sent, in a block, or in a block as deep as the operator asks for
 * (CONFIRM_BLOCKS).
 */
export type Wait = 'submitted' | 'mined' | 'confirmed'

/** What became of a settlement. `refused` proves that nothing was or can be transferred. */
export type Outcome =
  | {
      readonly state: 'settled'
      readonly transaction: Hex
      /** Sent, or in a block that may yet be replaced: the answer may leave, the ledger stays open. */
      readonly provisional?: true
      /** What it has become once that is certain or will not be known here. Never rejects. */
      readonly later?: Promise<Outcome>
    }
  | {
      readonly state: 'refused'
      readonly reason: string
      readonly message: string
      readonly transaction?: Hex
      /** It was recorded and could not be sent: true only while nobody else has taken the payment over. */
      readonly unsent?: true
    }
  | { readonly state: 'pending'; readonly transaction: Hex | null }

export type RefusedOutcome = Extract<Outcome, { state: 'refused' }>

export interface SettlerHealth {
  readonly ready: boolean
  readonly reason?: string
  /** Where there are several nodes or facilitators: which of them are of use. */
  readonly nodes?: readonly NodeState[]
}

export interface CheckOptions {
  /** False: the signature is no key's of the payer, so only a contract wallet could have signed. */
  readonly proven: boolean
  /** The payer's payments under way on this network that come before it and take their part of the balance. */
  readonly ahead: readonly Commitment[]
}

/** The only road to the chain. */
export interface Settler {
  readonly kind: 'chain' | 'facilitator' | 'scripted'
  /** Asks the chain what an offline check cannot know (balance, used nonce, contract wallets). Null: go ahead. */
  check(payload: PaymentPayload, requirements: PaymentRequirements, options?: CheckOptions): Promise<Refusal | null>
  /**
   * Sends the payment. `record` is awaited before anything leaves; when it resolves to false nothing is sent and the
   * outcome is pending. A settlement that is less far than `wait` after a time is pending.
   */
  settle(
    payload: PaymentPayload,
    requirements: PaymentRequirements,
    options: { readonly record: (intent: Intent) => Promise<boolean>; readonly wait: Wait },
  ): Promise<Outcome>
  /**
   * What the chain says of a submitted payment; sends it again where it has vanished, the same authorization in the same
   * transaction or another one. Never guesses.
   */
  status(record: PaymentRecord): Promise<Outcome>
  /**
   * False, with a reason, while payments cannot be settled: on this network, or absent on any. A reason beside true
   * names the networks that are down. Cheap: answered from the last look.
   */
  health(network?: Network): SettlerHealth
  close(): Promise<void>
}
