/**
 * A payment: as a call presents it, what was found about it before the call was read, and the answer that it bought. The
 * rest of this folder builds on these types.
 */
import type { DecodedPayment, NodeCallCounter, OfflineRefusal } from '../methods/payment-method.ts'
import type { Counted } from '../stores/shared-limit.ts'
import type { PaymentRequirements } from '../x402/payment-requirements.ts'
import type { Receipt } from '../x402/settlement-response.ts'
import type { PresentedSignIn } from '../x402/sign-in-with-x.ts'
import type { PaymentRecord, StoredAnswer } from './journal/journal.ts'

/** The result of the offline check of a payment. */
export interface OfflineCheck {
  readonly requirements: PaymentRequirements
  /** The catalog version of the price. */
  readonly priceVersion: string
  /** Null, or why the settler has to verify the proof. */
  readonly refusal: OfflineRefusal | null
  /** When it was checked, in seconds since the epoch. */
  readonly atSeconds: number
}

/** Counts the calls of nodes for one payment or one sign-in. */
export interface NodeCallAccount extends NodeCallCounter {
  /**
   * Counts that code on the chain decides about the signature. Throws RateLimited. Anybody may send a signature that is not
   * proven, so those of one address count apart from those of others.
   */
  countCodeCheck(isProven: boolean): Promise<void>
}

/** A payment whose request was not read yet. */
export interface UnreadPayment extends Claim {
  readonly payment: DecodedPayment
  /** The size of the body as it is announced, in bytes; infinite if it is not. */
  readonly bodyBytes: number
  readonly callId: string
  /** Whether somebody still waits for the answer. */
  readonly connection: Connection
  readonly nodeCalls: NodeCallAccount
  /** Its part of the limits of those who do not pay. It is taken back when the call is sold. */
  readonly counted: Counted[]
}

/** A payment with the request that it came with. */
export interface PresentedPayment extends UnreadPayment {
  /** Digest of the operation and its input. */
  readonly fingerprint: string
  /** The findings before the request was read. Null: nothing was checked. */
  readonly checked: OfflineCheck | null
}

export interface Connection {
  /** True once the caller has disconnected. */
  readonly hasLeft: boolean
}

/** The parts of a request that prove that a purchase is its caller's. */
export interface ClaimedRequest {
  /** HTTP header Idempotency-Key, as sent. */
  readonly idempotencyKey?: string
  /** The header SIGN-IN-WITH-X or its counterpart in MCP, as sent. */
  readonly signIn?: PresentedSignIn
  /** The network address that the call comes from. Null if others may call from there too. */
  readonly client: string | null
  /** The caller that limits count: the address, or its /64. Absent on this machine, which is not limited. */
  readonly callerPlace?: string
}

/** A caller who says that a purchase is his. */
export interface Claim {
  /** The payer's identifier of this purchase: Idempotency-Key or payment-identifier. */
  readonly identifier: string | null
  /** Digest of the network address that the call comes from. Null if others may call from there too. */
  readonly place: string | null
  /** The wallet's sign-in, as it was sent. */
  readonly signIn: PresentedSignIn | null
  /** The caller that limits count. Null on this machine, which is not limited. */
  readonly callerPlace: string | null
}

/** An answer with the receipt of the payment that bought it. */
export interface PaidAnswer extends StoredAnswer {
  /** Absent if nothing was charged: the product answered outside 2xx or with an empty body. */
  readonly receipt?: Receipt
  /** The payment's record in the journal when the answer leaves. Set with a successful receipt. */
  readonly record?: PaymentRecord
  /** The payment bought a stream. Streams are not stored, so the product has to produce it again. */
  readonly mustRefetch?: true
}

/** The parts of a request that payments need. */
export interface PaymentRequest extends ClaimedRequest {
  /** Shown to the caller, in logs and in errors. */
  readonly id: string
  readonly caller: Connection
  readonly credential: { readonly payments: readonly (string | Readonly<Record<string, unknown>>)[] } | null
  /**
   * The size of the body in bytes; until it has arrived, as it is announced. 0 without one, infinite if its size is not
   * announced.
   */
  readonly bodyBytes: number
}
