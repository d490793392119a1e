/** The payment of one request, with the data that identifies its caller. */
import { createHash } from 'node:crypto'
import { ServiceError } from '../errors.ts'
import { decodePayment, type DecodedPayment, type PaymentMethod } from '../methods/payment-method.ts'
import { identifierOf } from '../x402/payment-identifier.ts'

/** Identifies the caller who presents a payment. */
export interface Caller {
  /** The payer's identifier of this purchase: Idempotency-Key or payment-identifier. */
  readonly identifier: string | null
  /** Digest of the network address that the call comes from. Null if others may call from there too. */
  readonly place: string | null
}

/** A payment with the request that it came with. */
export interface PresentedPayment extends Caller {
  readonly payment: DecodedPayment
  /** Digest of the operation and its input. */
  readonly fingerprint: string
  readonly callId: string
  /** Whether somebody still waits for the answer. */
  readonly connection: Connection
}

export interface Connection {
  /** True once the caller has disconnected. */
  readonly hasLeft: boolean
}

/** The parts of a request that payments need. */
export interface PaymentRequest {
  readonly id: string
  readonly caller: Connection
  readonly credential: { readonly payments: readonly (string | Readonly<Record<string, unknown>>)[] } | null
  /** HTTP header Idempotency-Key, as sent. */
  readonly idempotencyKey?: string
  /** An IPv4 address, or the /64 of an IPv6 one. Null if others may call from there too. */
  readonly client: string | null
}

/**
 * Reads the payment of a request; null if there is none. The same payment may be sent more than once, e.g. in two
 * headers.
 * @throws ServiceError `payment_invalid`; InvalidInput (422) for a malformed Idempotency-Key
 */
export function presentedPayment(
  { id, caller, credential, idempotencyKey, client }: PaymentRequest,
  fingerprint: string,
  methods: readonly PaymentMethod[],
): PresentedPayment | null {
  const decoded = (credential?.payments ?? []).map((each) => decodePayment(each, methods))
  const [payment, ...others] = decoded
  if (!payment) return null
  if (others.some(({ key }) => key !== payment.key))
    throw new ServiceError('payment_invalid', 'The call has two different payments. Send one of them.', {
      reason: 'invalid_payload',
    })
  const identifier = identifierOf(payment.envelope, idempotencyKey)
  return { payment, fingerprint, identifier, place: placeOf(client), callId: id, connection: caller }
}

function placeOf(client: string | null): string | null {
  if (client === null) return null
  return createHash('sha256').update(`bought from ${client}`).digest('hex').slice(0, 32)
}
