/** The port that every way to pay meets: what is checked, sent and asked of a payment. */
import type { PaymentPayload } from '../x402/payload.ts'
import type { PaymentRequirements, Refusal } from '../x402/payment-requirements.ts'
import type { Hex, Network } from '../config/networks.ts'

/** (network, asset, payer, nonce), lower case, joined by "/": the identity of a payment. */
export type PaymentKey = string

export function paymentKey(network: Network, payload: Pick<PaymentPayload, 'from' | 'nonce'>): PaymentKey {
  return `${network.caip2}/${network.asset}/${payload.from}/${payload.nonce}`.toLowerCase()
}

/** What was about to be sent when `submitted` was written; a new attempt keeps it until it sends for itself. */
export type Intent =
  | {
      readonly kind: 'chain'
      readonly transaction: Hex
      /** The signed raw transaction, to be sent again unchanged. */
      readonly raw: Hex
      readonly sender: Hex
      readonly senderNonce: number
      /** The first block it can be in: logs are searched from here. */
      readonly fromBlock: number
      /** How many payments share the transaction. Then `raw` is empty: each can be sent again alone. */
      readonly batch?: number
    }
  | { readonly kind: 'facilitator'; readonly url: string; readonly fromBlock: number | null }

/** A payment that was sent, as the journal has it. */
export interface SubmittedPayment {
  readonly key: PaymentKey
  /** CAIP-2. */
  readonly network: string
  readonly payer: Hex
  readonly payTo: Hex
  readonly amount: bigint
  readonly nonce: Hex
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly signature: Hex
  readonly intent: Intent | null
}

/** What a payment under way will take of its payer's balance. */
export type Commitment = Pick<PaymentPayload, 'nonce' | 'value'>

/** A node as of the last time it was asked. */
export interface NodeState {
  /** Host and port only: the address of a node may hold a key. */
  readonly node: string
  readonly ready: boolean
  readonly reason?: string
}

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
  status(record: SubmittedPayment): Promise<Outcome>
  /**
   * False, with a reason, while payments cannot be settled: on this network, or absent on any. A reason beside true
   * names the networks that are down. Cheap: answered from the last look.
   */
  health(network?: Network): SettlerHealth
  close(): Promise<void>
}
