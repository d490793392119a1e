/**
 * The port for ways to pay. A way to pay is a folder beside this file that brings two parts: a `PaymentMethod`, which
 * writes requirements and reads payments without asking anybody, and a `Settler`, which moves the money. Everything
 * above knows a payment only as the `Payment` below; what its identity and proof mean, only the method knows. Each
 * network has one method.
 */
import type { Hex, Network } from '../config/networks.ts'
import { decodeEnvelope, type PaymentEnvelope } from '../x402/payment-envelope.ts'
import {
  formatOf,
  type PaymentRequirements,
  type Refusal,
  type RequirementFormat,
} from '../x402/payment-requirements.ts'

/** Network, asset, payer and identity in lower case, joined by "/". No two payments share one. */
export type PaymentKey = string

/**
 * Builds the key of a payment.
 * @example paymentKey(baseSepolia, '0xBuyer', '0x01') → "eip155:84532/0x036c…cf7e/0xbuyer/0x01"
 */
export function paymentKey(network: Network, payer: string, identity: string): PaymentKey {
  return `${network.caip2}/${network.asset}/${payer}/${identity}`.toLowerCase()
}

/** One payment, whichever method made it. The journal stores exactly these fields. */
export interface Payment {
  readonly key: PaymentKey
  /** CAIP-2. */
  readonly network: string
  readonly payer: Hex
  readonly payTo: Hex
  /** What the payer authorised, in atomic units. */
  readonly amount: bigint
  /** Tells this payment from the payer's others; the method defines it. */
  readonly identity: string
  /** It settles only after this second and before `expiresAt`: seconds since the epoch. */
  readonly startsAt: bigint
  readonly expiresAt: bigint
  /** What proves that the payer agreed, as text that only the method reads. */
  readonly proof: string
}

/** A payment as it was presented. */
export interface DecodedPayment extends Payment {
  readonly envelope: PaymentEnvelope
}

/** A payment that may have been sent, as the journal knows it. */
export interface SubmittedPayment extends Payment {
  readonly intent: Intent | null
}

/**
 * What a settler is about to send, stored as JSON before it sends. Settlers add fields of their own, which only they
 * read.
 */
export interface Intent {
  readonly kind: string
  /** The transaction, where it is known before it is sent. */
  readonly transaction?: Hex
  /** The service that is asked to send it. */
  readonly url?: string
}

/** A refusal by a check that asked nobody. */
export interface OfflineRefusal extends Refusal {
  /** True where the settler may accept the proof all the same, e.g. the signature of a contract wallet. */
  readonly needsSettler?: boolean
}

/** A way to pay on one network. */
export interface PaymentMethod extends RequirementFormat {
  /**
   * Reads the method's own part of an envelope.
   * @throws ServiceError `payment_invalid` with an x402 reason and advice
   */
  decode(envelope: PaymentEnvelope): DecodedPayment
  /** Checks a payment against what was asked without asking anybody. Null: it is what was asked, and proved. */
  verify(payment: DecodedPayment, requirements: PaymentRequirements, nowSeconds: number): OfflineRefusal | null
  /** The x402 reason of a payment that ends before it can be settled. */
  readonly expiredReason: string
}

/** The method of a network, by its CAIP-2 id. Throws where payments are not taken there. */
export function methodOf(methods: readonly PaymentMethod[], caip2: string): PaymentMethod {
  return formatOf(methods, { caip2 })
}

/**
 * Reads a payment in any envelope of x402 v1 or v2.
 * @param presented base64 text (standard alphabet), or the payload object itself
 * @throws ServiceError `payment_invalid` with an x402 reason and advice
 */
export function decodePayment(presented: string | object, methods: readonly PaymentMethod[]): DecodedPayment {
  const envelope = decodeEnvelope(presented, methods)
  return methodOf(methods, envelope.network).decode(envelope)
}

/** How far a settlement must be before the answer leaves: sent, in a block, or in a block as deep as CONFIRM_BLOCKS. */
export type Wait = 'submitted' | 'mined' | 'confirmed'

/** What became of a settlement. `refused` proves that nothing was transferred and nothing can be. */
export type Outcome =
  | {
      readonly state: 'settled'
      readonly transaction: Hex
      /** Sent, or in a block that may yet be replaced: the answer may leave, but the payment stays open. */
      readonly provisional?: true
      /** The final outcome, once it is certain or the settler stops watching. Never rejects. */
      readonly later?: Promise<Outcome>
    }
  | {
      readonly state: 'refused'
      readonly reason: string
      readonly message: string
      readonly transaction?: Hex
      /** The intent was recorded and could not be sent: true only while nobody else has taken the payment over. */
      readonly unsent?: true
    }
  | { readonly state: 'pending'; readonly transaction: Hex | null }

export type RefusedOutcome = Extract<Outcome, { state: 'refused' }>

/** A node or a facilitator as of the last time it was asked. */
export interface NodeState {
  /** Host and port only: the address of a node may hold a key. */
  readonly node: string
  readonly ready: boolean
  readonly reason?: string
}

export interface SettlerHealth {
  readonly ready: boolean
  readonly reason?: string
  /** The state of each node or facilitator, where there are several. */
  readonly nodes?: readonly NodeState[]
}

/** What another payment in progress will take from the payer's balance. */
export type Commitment = Pick<Payment, 'identity' | 'amount'>

export interface CheckOptions {
  /** False where `verify` could not prove the payment, so that the settler must. */
  readonly proven: boolean
  /** Payments of the same payer on this network that are in progress and were committed before this one. */
  readonly ahead: readonly Commitment[]
}

/** Moves the money of one method's payments. */
export interface Settler {
  readonly kind: 'chain' | 'facilitator' | 'scripted'
  /** Checks what only the network knows, e.g. the balance and whether the payment is used. Null: it can be settled. */
  check(payment: DecodedPayment, requirements: PaymentRequirements, options?: CheckOptions): Promise<Refusal | null>
  /**
   * Sends a payment. `record` is awaited before anything is sent; when it resolves to false, nothing is sent and the
   * outcome is pending. A settlement that does not get as far as `wait` in time is pending.
   */
  settle(
    payment: DecodedPayment,
    requirements: PaymentRequirements,
    options: { readonly record: (intent: Intent) => Promise<boolean>; readonly wait: Wait },
  ): Promise<Outcome>
  /** Finds out what became of a submitted payment, and sends it again where it was lost. Never guesses. */
  status(payment: SubmittedPayment): Promise<Outcome>
  /**
   * Whether payments can be settled: on this network, or on any. `reason` says why not; beside `ready: true` it names
   * the networks that are down. Cheap: answered from the last look.
   */
  health(network?: Network): SettlerHealth
  close(): Promise<void>
}
