/**
 * The payer's own name for a purchase: the x402 extension `payment-identifier`, or the HTTP header Idempotency-Key
 * (draft-ietf-httpapi-idempotency-key-header). It protects an agent that lost our answer from paying twice: a second
 * payment under the same name is refused.
 */
import { InvalidInput, ServiceError } from '../errors.ts'
import type { PaymentEnvelope } from './payment-envelope.ts'

/** The name of the extension. */
export const EXTENSION = 'payment-identifier'

const EXTENSION_ID = /^[A-Za-z0-9_-]{16,128}$/
const HEADER_ID = /^[\x21-\x7e]{1,255}$/

/**
 * Returns the identifier sent with a payment, or null.
 *
 * @param header Idempotency-Key as sent, with or without the quotes of a structured field
 * @throws ServiceError `payment_invalid` if the id of the extension is malformed
 * @throws InvalidInput if the header is malformed, or differs from the extension
 */
export function identifierOf({ extensions }: PaymentEnvelope, header: string | undefined): string | null {
  const [inPayment, inHeader] = [
    extensionId(extensions[EXTENSION]),
    header === undefined ? null : identifierInHeader(header),
  ]
  if (inPayment !== null && inHeader !== null && inPayment !== inHeader)
    throw invalidHeader(`Idempotency-Key differs from the ${EXTENSION} in the payment. Send one of them.`)
  return inPayment ?? inHeader
}

/** The id in `{info: {required, id?}}`. A client that only echoes our declaration sends no id. */
function extensionId(extension: unknown): string | null {
  const id = (extension as { info?: { id?: unknown } | null } | null | undefined)?.info?.id
  if (id === undefined || id === null) return null
  if (typeof id === 'string' && EXTENSION_ID.test(id)) return id
  throw new ServiceError('payment_invalid', `${EXTENSION} must be 16 to 128 letters, digits, "_" or "-".`, {
    reason: 'invalid_payload',
  })
}

/** Returns the identifier in Idempotency-Key. Throws InvalidInput if it is malformed. */
export function identifierInHeader(header: string): string {
  const id = /^"(.*)"$/.exec(header)?.[1] ?? header
  if (HEADER_ID.test(id)) return id
  throw invalidHeader('Idempotency-Key must be 1 to 255 visible ASCII characters.')
}

function invalidHeader(message: string): InvalidInput {
  return new InvalidInput(message, ['header', 'Idempotency-Key'])
}
