/** The payment of one request, with the data that identifies its caller. */
import { createHash } from 'node:crypto'
import { ServiceError } from '../errors.ts'
import {
  decodePayment,
  type DecodedPayment,
  type OfflineRefusal,
  type PaymentMethod,
} from '../methods/payment-method.ts'
import type { PaymentRequirements } from '../x402/payment-requirements.ts'
import { identifierInHeader, identifierOf } from '../x402/payment-identifier.ts'
import type { NodeCallAccount, NodeCallBudget } from './node-call-budget.ts'
import type { PresentedSignIn } from '../x402/sign-in-with-x.ts'

/** Identifies the caller who presents a payment. */
export interface Caller {
  /** The payer's identifier of this purchase: Idempotency-Key or payment-identifier. */
  readonly identifier: string | null
  /** Digest of the network address that the call comes from. Null if others may call from there too. */
  readonly place: string | null
}

/** What the offline check of a payment found. */
export interface OfflineCheck {
  readonly requirements: PaymentRequirements
  /** The catalog version of the price. */
  readonly priceVersion: string
  /** Null, or why the settler has to verify the proof. */
  readonly refusal: OfflineRefusal | null
  /** When it was checked, in seconds since the epoch. */
  readonly atSeconds: number
  /** The large body that was counted for its payer. Absent for a small one. */
  readonly largeBody?: CountedBody
}

/** A large body that counts as unpaid. */
export interface CountedBody {
  /** Takes it back, because its call was paid. Does nothing once the minute in which it was counted is over. */
  paid(): Promise<void>
}

/** A payment whose request was not read yet. */
export interface UnreadPayment extends Claim {
  readonly payment: DecodedPayment
  /** The size of the body as it is announced, in bytes; infinite if it is not. */
  readonly bodyBytes: number
  readonly callId: string
  /** Whether somebody still waits for the answer. */
  readonly connection: Connection
  /** Counts the calls of nodes for it. */
  readonly nodeCalls: NodeCallAccount
}

/** A payment with the request that it came with. */
export interface PresentedPayment extends UnreadPayment {
  /** Digest of the operation and its input. */
  readonly fingerprint: string
  /** What was found before the request was read. Null: nothing was checked. */
  readonly checked: OfflineCheck | null
}

export interface Connection {
  /** True once the caller has disconnected. */
  readonly hasLeft: boolean
}

/** What a request brings to prove that a purchase is its caller's. */
export interface ClaimedRequest {
  /** HTTP header Idempotency-Key, as sent. */
  readonly idempotencyKey?: string
  /** The header SIGN-IN-WITH-X or its counterpart in MCP, as sent. */
  readonly signIn?: PresentedSignIn
  /** The network address that the call comes from. Null if others may call from there too. */
  readonly client: string | null
  /** What limits count as one caller: the address, or its /64. Absent on this machine, which is not limited. */
  readonly callerPlace?: string
}

/** A caller who says that a purchase is his. */
export interface Claim extends Caller {
  /** The wallet's sign-in, as it was sent. */
  readonly signIn: PresentedSignIn | null
  /** What limits count as one caller. Null on this machine, which is not limited. */
  readonly callerPlace: string | null
}

/** The parts of a request that payments need. */
export interface PaymentRequest extends ClaimedRequest {
  readonly id: string
  readonly caller: Connection
  readonly credential: { readonly payments: readonly (string | Readonly<Record<string, unknown>>)[] } | null
  /** The size of the body as it is announced, in bytes; infinite if it is not. */
  readonly bodyBytes: number
}

/**
 * Reads the payment of a request; null if there is none. The same payment may be sent more than once, e.g. in two
 * headers.
 * @throws ServiceError `payment_invalid`; InvalidInput (422) for a malformed Idempotency-Key
 */
export function presentedPayment(
  { id, caller, credential, idempotencyKey, signIn, client, callerPlace, bodyBytes }: PaymentRequest,
  methods: readonly PaymentMethod[],
  nodeCalls: NodeCallBudget,
): UnreadPayment | null {
  const decoded = (credential?.payments ?? []).map((each) => decodePayment(each, methods))
  const [payment, ...others] = decoded
  if (!payment) return null
  if (others.some(({ key }) => key !== payment.key))
    throw new ServiceError('payment_invalid', 'The call has two different payments. Send one of them.', {
      reason: 'invalid_payload',
    })
  const identifier = identifierOf(payment.envelope, idempotencyKey)
  return {
    payment,
    identifier,
    place: placeOf(client),
    signIn: signIn ?? null,
    callerPlace: callerPlace ?? null,
    callId: id,
    bodyBytes,
    connection: caller,
    nodeCalls: nodeCalls.account(payment.payer, callerPlace ?? null),
  }
}

/**
 * The claim of a request without a payment.
 * @throws InvalidInput (422) for a malformed Idempotency-Key
 */
export function claimOf({ idempotencyKey, signIn, client, callerPlace }: ClaimedRequest): Claim {
  const identifier = idempotencyKey === undefined ? null : identifierInHeader(idempotencyKey)
  return { identifier, place: placeOf(client), signIn: signIn ?? null, callerPlace: callerPlace ?? null }
}

function placeOf(client: string | null): string | null {
  if (client === null) return null
  return createHash('sha256').update(`bought from ${client}`).digest('hex').slice(0, 32)
}
