/**
 * The envelope of a payment, whichever way it came: the headers PAYMENT-SIGNATURE and X-PAYMENT, the MCP argument
 * payment_signature, or the MCP _meta object. The payload inside belongs to the payment method and is not read here.
 * Every refusal has a message of ours, never the text of a JSON parser.
 */
import { ServiceError } from '../errors.ts'
import { findNetwork, type Network } from '../config/networks.ts'
import { isObject } from '../validation/json.ts'

type Fields = Readonly<Record<string, unknown>>

/** A payment as it was presented, with the payload of its method unread. */
export interface PaymentEnvelope {
  readonly version: 1 | 2
  readonly scheme: string
  /** CAIP-2. */
  readonly network: string
  /** The part that the payment method defines. */
  readonly payload: Fields
  /** v2: the `accepts` entry that the client says it accepted. */
  readonly accepted: Fields | null
  /** v2: the extensions that the client echoes. */
  readonly extensions: Fields
  /** v2: the resource that the client says it pays for. */
  readonly resource?: Fields
}

/** A payment has about 1,000 characters, one of a contract wallet a few thousand. */
const MAX_CHARACTERS = 16_384
/** Node joins headers of one name with commas. */
const SEVERAL = /^[A-Za-z0-9+/]+={0,2}(, *[A-Za-z0-9+/]+={0,2})+$/

/**
 * Reads the envelope of a payment of x402 v1 or v2 (spec: transports/http).
 *
 * @param presented base64 text (standard alphabet), or the payload object itself
 * @param supported the schemes and networks that payments are taken on
 * @throws ServiceError `payment_invalid` with an x402 reason and advice
 */
export function decodeEnvelope(
  presented: string | object,
  supported: readonly { readonly scheme: string; readonly network: Network }[],
): PaymentEnvelope {
  const envelope = fieldsOf(typeof presented === 'string' ? decodeBase64(presented) : bounded(presented), 'The payment')
  const version = envelope['x402Version']
  if (version !== 1 && version !== 2) throw invalid('x402Version must be the number 1 or 2.', 'invalid_x402_version')
  const accepted = version === 2 ? fieldsOf(envelope['accepted'], 'accepted') : null
  const { scheme, network: id } = (accepted ?? envelope) as { scheme?: unknown; network?: unknown }
  const networks = supported.filter((each) => each.scheme === scheme).map(({ network }) => network)
  if (typeof scheme !== 'string' || networks.length === 0) {
    const schemes = [...new Set(supported.map((each) => `"${each.scheme}"`))]
    throw invalid(`The only scheme accepted here is ${schemes.join(' or ')}.`, 'unsupported_scheme')
  }
  const network = findNetwork(networks, id)
  if (!network) throw invalid(`The payment is for another network. ${payOn(networks)}`, 'invalid_network')
  return {
    version,
    scheme,
    network: network.caip2,
    payload: fieldsOf(envelope['payload'], 'payload'),
    accepted,
    extensions: isObject(envelope['extensions']) ? envelope['extensions'] : {},
    ...(isObject(envelope['resource']) ? { resource: envelope['resource'] } : {}),
  }
}

/**
 * Returns a value as the JSON object called `name` in a payment. Throws ServiceError `payment_invalid` for anything
 * else.
 */
export function fieldsOf(value: unknown, name: string): Fields {
  if (!isObject(value)) throw invalid(`${name} must be a JSON object.`)
  return value
}

/** The refusal of a payment that cannot be read. */
export function invalid(message: string, reason = 'invalid_payload'): ServiceError {
  return new ServiceError('payment_invalid', message, { reason })
}

function decodeBase64(text: string): unknown {
  if (text.length > MAX_CHARACTERS) throw tooLong()
  const bytes = Buffer.from(text, 'base64')
  // Nearly every payment is padded base64, which is cheaper to write again than to match.
  if (bytes.toString('base64') !== text || text === '') assertBase64(text)
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw invalid('The payment is base64, but it does not contain JSON.')
  }
}

/** Throws if a text is not base64. It may lack its padding. */
function assertBase64(text: string): void {
  if (SEVERAL.test(text)) throw invalid('There are several payments here, separated by commas. Send one payment.')
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text))
    throw invalid('The payment must be base64 (standard alphabet) of a JSON object.')
}

function bounded(payment: object): object {
  if (JSON.stringify(payment).length > MAX_CHARACTERS) throw tooLong()
  return payment
}

function payOn(networks: readonly Network[]): string {
  return `Pay on ${networks.map(({ name, caip2 }) => `${name} (${caip2})`).join(' or ')}.`
}

function tooLong(): ServiceError {
  return invalid(`The payment is longer than ${MAX_CHARACTERS} characters.`)
}
