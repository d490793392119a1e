/**
 * The port for ways to pay. A way to pay is a folder beside this file that brings two parts: a `PaymentMethod`, which
 * writes requirements and reads payments offline, and a `Settler`, which moves the money. The rest of the gateway knows
 * a payment only as the `Payment` below; only the method knows what its identity and proof mean. Each network has one
 * method.
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

/** A payment of any method. The journal stores exactly these fields. */
export interface Payment {
  readonly key: PaymentKey
  /** CAIP-2. */
  readonly network: string
  readonly payer: Hex
  readonly payTo: Hex
  /** The amount that the payer authorised, in atomic units. */
  readonly amount: bigint
  /** Distinguishes this payment from the payer's other payments, e.g. a nonce. */
  readonly identity: string
  /** The payment can settle only after `startsAt` and before `expiresAt`, both in seconds since the epoch. */
  readonly startsAt: bigint
  readonly expiresAt: bigint
  /** Proves that the payer agreed, e.g. a signature. Only the method reads it. */
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
 * The settlement that a settler is about to send, stored as JSON before it sends. Settlers add fields of their own,
 * which only they read.
 */
export interface Intent {
  readonly kind: string
  /** The transaction, if it is known before it is sent. */
  readonly transaction?: Hex
  /** The service that sends it, if it is not sent from here. */
  readonly url?: string
}

/** The refusal of an offline check. */
export interface OfflineRefusal extends Refusal {
  /** True if the settler may still accept the proof, e.g. the signature of a contract wallet. */
  readonly needsSettler?: boolean
}

/** A way to pay on one network. */
export interface PaymentMethod extends RequirementFormat {
  /**
   * Reads the method's own part of an envelope.
   * @throws ServiceError `payment_invalid` with an x402 reason and advice
   */
  decode(envelope: PaymentEnvelope): DecodedPayment
  /** Checks a payment against the requirements, offline. Null: it meets them and its proof is valid. */
  verify(payment: DecodedPayment, requirements: PaymentRequirements, nowSeconds: number): OfflineRefusal | null
  /** The x402 reason of a payment that expires before it can be settled. */
  readonly expiredReason: string
}

/** The method of a network, by its CAIP-2 id. Throws if payments are not accepted on it. */
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

/** How far a settlement must get before the answer leaves: sent, in a block, or CONFIRM_BLOCKS deep. */
export type Wait = 'submitted' | 'mined' | 'confirmed'

/** The outcome of a settlement. `refused` means that nothing was transferred and nothing can be. */
export type Outcome =
  | {
      readonly state: 'settled'
      readonly transaction: Hex
      /** Sent, or in a block that a reorganisation may replace: the answer may leave, but the payment stays open. */
      readonly provisional?: true
      /** The final outcome, once it is certain or the settler stops watching. Never rejects. */
      readonly later?: Promise<Outcome>
      /** Gas that our transaction used, if it settled this payment alone. */
      readonly gasUsed?: bigint
      /** The account that sent the transaction, if it is none of ours: another gateway's, or a stranger's. */
      readonly foreignSender?: Hex
      /** The transaction is not ours, and the operator chose that such a payment buys nothing: it is a debt. */
      readonly isOwed?: true
    }
  | {
      readonly state: 'refused'
      readonly reason: string
      readonly message: string
      readonly transaction?: Hex
      /**
       * The intent was recorded and the payment could not be sent. Only valid if no other process has claimed it since.
       */
      readonly unsent?: true
      /**
       * Wei that our transaction cost, or this payment's part of a batch, which is in a block and failed. The same
       * payment must not be sent again.
       */
      readonly burnt?: bigint
    }
  | { readonly state: 'pending'; readonly transaction: Hex | null }

export type RefusedOutcome = Extract<Outcome, { state: 'refused' }>

/** A payment that was settled by a transaction. */
export interface SettledPayment extends Payment {
  readonly transaction: Hex
}

/**
 * How final a settlement is. `final`: no reorganisation can remove its transfer any more. `shallow`: one can.
 * `missing`: its transaction is in no block, or makes no such transfer.
 */
export type Finality = 'final' | 'shallow' | 'missing'

/** The state of a node or facilitator when it was last checked. */
export interface NodeState {
  /** Host and port only: the address of a node may hold a key. */
  readonly node: string
  readonly ready: boolean
  readonly reason?: string
}

export interface SettlerHealth {
  readonly ready: boolean
  readonly reason?: string
  /** The state of each node or facilitator, if there are several. */
  readonly nodes?: readonly NodeState[]
}

/** Cost of settling one payment now, if it is sent alone: one in a batch costs less. Wei, and units of gas. */
export interface SettlementCost {
  readonly gas: bigint
  /** Wei per unit of gas. */
  readonly gasPrice: bigint
  /** The fee that the chain adds for the data of the transaction. */
  readonly l1Fee: bigint
  /** The sum. */
  readonly wei: bigint
}

/** An account of ours that pays the gas of settlements on one network. */
export interface GasAccount {
  readonly network: Network
  readonly address: Hex
  /** Wei, when it was last read. */
  readonly balance: bigint
  readonly settlementCost: SettlementCost
  /** Wei that its transactions have cost since this process started, and how much of that for failed ones. */
  readonly spent: bigint
  readonly spentOnFailures: bigint
}

/** The amount that another payment in progress will take from the payer's balance. */
export type Commitment = Pick<Payment, 'identity' | 'amount'>

/** Counts the calls of nodes that a caller causes. */
export interface NodeCallCounter {
  /**
   * Counts calls that are about to be made. Throws RateLimited if they may not be.
   * @param isProven whether the payer is known to have signed; otherwise anybody may have named this payer
   */
  spend(calls: number, isProven: boolean): Promise<void>
}

export interface CheckOptions {
  /** False if `verify` could not verify the proof, so that the settler has to. */
  readonly proven: boolean
  /** Payments of the same payer on this network that are in progress and were committed before this one. */
  readonly ahead: readonly Commitment[]
  /** The budget that calls of nodes count towards. Absent: they are not counted. */
  readonly nodeCalls?: NodeCallCounter
}

/** The listing for a facilitator: the resource and its description, in the words of our own 402. */
export interface Listing {
  readonly resource: { readonly url: string; readonly description?: string }
  readonly extensions: Readonly<Record<string, unknown>>
}

export interface SettleOptions {
  /** Stores the intent. False: nothing may be sent. */
  readonly record: (intent: Intent) => Promise<boolean>
  readonly wait: Wait
  /**
   * The payment has to outlast a rollback of CONFIRM_BLOCKS: it is final one block deeper than that, and at this depth
   * at the earliest. The settler notes it in the intent. Absent or 1: it is final at CONFIRM_BLOCKS.
   */
  readonly minBlocks?: number
  /** Describes what is paid for. If absent, nothing is said about it. */
  readonly listing?: () => Listing
}

/** Moves the money of one method's payments. */
export interface Settler {
  readonly kind: 'chain' | 'facilitator' | 'scripted'
  /**
   * Checks a payment on the network, e.g. the balance and whether the payment is used. Returns null if it can be
   * settled. A refusal may be some seconds old.
   */
  check(payment: DecodedPayment, requirements: PaymentRequirements, options?: CheckOptions): Promise<Refusal | null>
  /**
   * Pre-checks a payer against a cached account read, before the request is read. Returns null if the payer can pay.
   * Absent if the settler does not know accounts. Throws `settler_unavailable`.
   */
  mayPay?(
    payment: DecodedPayment,
    requirements: PaymentRequirements,
    options: Pick<CheckOptions, 'proven' | 'nodeCalls'>,
  ): Promise<Refusal | null>
  /**
   * The keccak-256 of the code of a payer's account, as the last check of it read it. Code can do anything while a
   * payment settles. Null: the account has no code. Undefined, or absent: somebody else pays the gas of the settlement.
   */
  codeHashOf?(payment: Pick<Payment, 'network' | 'payer'>): Hex | null | undefined
  /**
   * Sends a payment. `record` stores the intent before anything is sent; if it resolves to false, nothing is sent and
   * the outcome is pending. The outcome is also pending if the settlement does not get as far as `wait` in time.
   */
  settle(payment: DecodedPayment, requirements: PaymentRequirements, options: SettleOptions): Promise<Outcome>
  /**
   * Finds out what became of a submitted payment, and sends it again if it was lost. Never guesses. With
   * `maySend: false` it only looks, because the buyer was told that nothing is charged.
   */
  status(payment: SubmittedPayment, options?: { readonly maySend?: boolean }): Promise<Outcome>
  /**
   * Reads how final settled payments are, in their order. Absent if a settlement is final at once. Throws if the chain
   * cannot be read.
   */
  finality?(payments: readonly SettledPayment[]): Promise<readonly Finality[]>
  /**
   * Whether payments can be settled on this network, or on any network if none is given. `reason` explains why not;
   * with `ready: true` it names the networks that are down. Cheap, because it returns the result of the last check.
   */
  health(network?: Network): SettlerHealth
  /** The accounts of ours that pay the gas, as they were last read. Absent or empty: somebody else pays. */
  gasAccounts?(): readonly GasAccount[]
  close(): Promise<void>
}
