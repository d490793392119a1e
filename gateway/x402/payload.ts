/**
 * What a payer presents, in any of its envelopes (the headers PAYMENT-SIGNATURE and X-PAYMENT, the MCP argument
 * payment_signature, the MCP _meta object), as one PaymentPayload. Everything is checked here, so that nothing behind
 * this module meets a wrong type; and every refusal is a sentence of ours, never the text of an engine.
 */
import { ServiceError } from '../errors.ts'
import { findNetwork, type Hex, type Network } from '../config/networks.ts'

/** What was presented: an EIP-3009 authorization with its signature, whichever envelope carried it. */
export interface PaymentPayload {
  readonly version: 1 | 2
  readonly scheme: string
  /** CAIP-2. */
  readonly network: string
  readonly from: Hex
  readonly to: Hex
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  /** 32 bytes, lower-case hex. */
  readonly nonce: Hex
  readonly signature: Hex
  /** v2: the accepts entry the client says it accepted, unparsed. */
  readonly accepted: Readonly<Record<string, unknown>> | null
  /** v2 extensions echoed by the client, unparsed. */
  readonly extensions: Readonly<Record<string, unknown>>
  /** v2: the resource the client says it pays for, unparsed. A facilitator catalogs by it. */
  readonly resource?: Readonly<Record<string, unknown>>
}

/** A payment is about 1,000 characters; one of a contract wallet a few thousand. */
const MAX_CHARACTERS = 16_384
const UINT256_LIMIT = 1n << 256n
const UINT256_DIGITS = 78

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads a payment of x402 v1 or v2 (spec: transports/http, schemes/exact/evm, EIP-3009).
 *
 * @param presented base64 text (standard alphabet), or the payload object itself
 * @throws ServiceError `payment_invalid` with an x402 reason and advice
 */
export function decodePayment(presented: string | object, networks: readonly Network[]): PaymentPayload {
  const envelope = fieldsOf(typeof presented === 'string' ? decodeBase64(presented) : bounded(presented), 'the payment')
  const version = envelope['x402Version']
  if (version !== 1 && version !== 2) throw invalid('x402Version must be the number 1 or 2.', 'invalid_x402_version')
  const accepted = version === 2 ? fieldsOf(envelope['accepted'], 'accepted') : null
  const { scheme, network: id } = (accepted ?? envelope) as { scheme?: unknown; network?: unknown }
  if (scheme !== 'exact') throw invalid('The only scheme taken here is "exact".', 'unsupported_scheme')
  const network = findNetwork(networks, id)
  if (!network) throw invalid(`The payment is for another network. ${whichNetworks(networks)}`, 'invalid_network')
  const payload = fieldsOf(envelope['payload'], 'payload')
  const authorization = fieldsOf(payload['authorization'], 'payload.authorization')
  return {
    version,
    scheme,
    network: network.caip2,
    from: hex(authorization, 'from', 20),
    to: hex(authorization, 'to', 20),
    value: uint256(authorization, 'value'),
    validAfter: uint256(authorization, 'validAfter'),
    validBefore: uint256(authorization, 'validBefore'),
    nonce: hex(authorization, 'nonce', 32),
    signature: signatureOf(payload),
    accepted,
    extensions: isFields(envelope['extensions']) ? envelope['extensions'] : {},
    ...(isFields(envelope['resource']) ? { resource: envelope['resource'] } : {}),
  }
}

function decodeBase64(text: string): unknown {
  if (text.length > MAX_CHARACTERS) throw tooLong()
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text))
    throw invalid('The payment must be base64 (standard alphabet) of a JSON object.')
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString('utf8'))
  } catch {
    throw invalid('The payment is base64, but what it holds is not JSON.')
  }
}

function bounded(payment: object): object {
  if (JSON.stringify(payment).length > MAX_CHARACTERS) throw tooLong()
  return payment
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fieldsOf(value: unknown, name: string): Fields {
  if (!isFields(value)) throw invalid(`${name} must be a JSON object.`)
  return value
}

/** Lower case, so that equal bytes are equal text. */
function hex(fields: Fields, name: string, bytes: number): Hex {
  const value = fields[name]
  if (typeof value !== 'string' || value.length !== 2 + 2 * bytes || !/^0x[0-9a-f]+$/i.test(value))
    throw invalid(`payload.authorization.${name} must be 0x and ${bytes} bytes in hexadecimal.`)
  return value.toLowerCase() as Hex
}

/** Decimal text only: a number may have lost digits, and hexadecimal is another amount to another reader. */
function uint256(fields: Fields, name: string): bigint {
  const value = fields[name]
  if (typeof value !== 'string' || value.length > UINT256_DIGITS || !/^(0|[1-9][0-9]*)$/.test(value))
    throw invalid(`payload.authorization.${name} must be a string of decimal digits.`)
  const number = BigInt(value)
  if (number >= UINT256_LIMIT) throw invalid(`payload.authorization.${name} does not fit into 256 bits.`)
  return number
}

/** 65 bytes for a key; contract wallets sign with more. */
function signatureOf(payload: Fields): Hex {
  const { signature } = payload
  if (typeof signature !== 'string' || signature.length % 2 !== 0 || !/^0x[0-9a-f]+$/i.test(signature))
    throw invalid('payload.signature must be 0x and whole bytes in hexadecimal.', 'invalid_exact_evm_payload_signature')
  return signature.toLowerCase() as Hex
}

function whichNetworks(networks: readonly Network[]): string {
  return `Pay on ${networks.map(({ name, caip2 }) => `${name} (${caip2})`).join(' or ')}.`
}

function tooLong(): ServiceError {
  return invalid(`The payment is longer than ${MAX_CHARACTERS} characters.`)
}

function invalid(message: string, reason = 'invalid_payload'): ServiceError {
  return new ServiceError('payment_invalid', message, { reason })
}
