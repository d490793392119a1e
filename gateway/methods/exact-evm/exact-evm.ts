/**
 * The payment method "exact" on EVM networks (x402 spec: schemes/exact/evm): the payer signs an EIP-3009
 * TransferWithAuthorization, and a settler sends it to the token. This file writes its requirements and reads its
 * payloads; `authorization-check.ts` checks them.
 */
import type { Hex, Network } from '../../config/networks.ts'
import { fieldsOf, invalid, type PaymentEnvelope } from '../../x402/payment-envelope.ts'
import { type DecodedPayment, paymentKey, type PaymentMethod } from '../payment-method.ts'
import { createAuthorizationCheck } from './authorization-check.ts'

type Fields = Readonly<Record<string, unknown>>

const UINT256_LIMIT = 1n << 256n
const UINT256_DIGITS = 78

/** Creates the method for one network. The EIP-712 domain separator is computed once, here. */
export function createExactEvm(network: Network): PaymentMethod {
  const { caip2, asset, domain } = network
  return {
    scheme: 'exact',
    network,
    expiredReason: 'invalid_exact_evm_payload_authorization_valid_before',

    acceptsV1: (
      { scheme, amount, payTo, maxTimeoutSeconds },
      { url, description, mimeType = 'application/json', outputSchema },
    ) => ({
      scheme,
      network: network.name,
      maxAmountRequired: String(amount),
      resource: url,
      description,
      mimeType,
      ...(outputSchema ? { outputSchema } : {}),
      payTo,
      maxTimeoutSeconds,
      asset,
      extra: domain,
    }),

    acceptsV2: ({ scheme, amount, payTo, maxTimeoutSeconds }) => ({
      scheme,
      network: caip2,
      amount: String(amount),
      asset,
      payTo,
      maxTimeoutSeconds,
      extra: domain,
    }),

    decode: (envelope) => decode(envelope, network),
    verify: createAuthorizationCheck(network),
  }
}

/** The payment's identity is its nonce, its proof is its signature. */
function decode(envelope: PaymentEnvelope, network: Network): DecodedPayment {
  const authorization = fieldsOf(envelope.payload['authorization'], 'payload.authorization')
  const payer = hex(authorization, 'from', 20)
  const payTo = hex(authorization, 'to', 20)
  const amount = uint256(authorization, 'value')
  const startsAt = uint256(authorization, 'validAfter')
  const expiresAt = uint256(authorization, 'validBefore')
  const identity = hex(authorization, 'nonce', 32)
  const proof = signatureOf(envelope.payload)
  const key = paymentKey(network, payer, identity)
  return { key, network: network.caip2, payer, payTo, amount, identity, startsAt, expiresAt, proof, envelope }
}

/** Lower case, so that equal bytes are equal text. */
function hex(fields: Fields, name: string, bytes: number): Hex {
  const value = fields[name]
  if (typeof value !== 'string' || value.length !== 2 + 2 * bytes || !/^0x[0-9a-f]+$/i.test(value))
    throw invalid(`payload.authorization.${name} must be 0x and ${bytes} bytes in hexadecimal.`)
  return value.toLowerCase() as Hex
}

/** Decimal text only: a JSON number may have lost digits, and other readers take hexadecimal for another amount. */
function uint256(fields: Fields, name: string): bigint {
  const value = fields[name]
  if (typeof value !== 'string' || value.length > UINT256_DIGITS || !/^(0|[1-9][0-9]*)$/.test(value))
    throw invalid(`payload.authorization.${name} must be a string of decimal digits.`)
  const number = BigInt(value)
  if (number >= UINT256_LIMIT) throw invalid(`payload.authorization.${name} does not fit into 256 bits.`)
  return number
}

/**
 * We pay for the bytes that a settlement writes to the chain, whatever they are. An owner takes 65 bytes, a passkey several
 * hundred, and so does the deployment of a wallet.
 */
const MAX_SIGNATURE_BYTES = 4_096

/** A key signs with 65 bytes, a contract wallet with more. */
function signatureOf({ signature }: Fields): Hex {
  if (typeof signature !== 'string' || signature.length % 2 !== 0 || !/^0x[0-9a-f]+$/i.test(signature))
    throw invalid('payload.signature must be 0x and whole bytes in hexadecimal.', 'invalid_exact_evm_payload_signature')
  const bytes = signature.length / 2 - 1
  if (bytes > MAX_SIGNATURE_BYTES)
    throw invalid(
      `payload.signature has ${bytes} bytes; at most ${MAX_SIGNATURE_BYTES} are accepted.`,
      'invalid_exact_evm_payload_signature',
    )
  return signature.toLowerCase() as Hex
}
