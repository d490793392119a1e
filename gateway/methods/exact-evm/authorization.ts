/**
 * Scheme "exact" on EVM, checked offline: an EIP-3009 TransferWithAuthorization against what was asked. Cheap checks
 * come first, the one signature recovery last; recovery is native (libsecp256k1) where the package has a build.
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import secp256k1 from 'secp256k1'
import { findNetwork, type Network } from '../../config/networks.ts'
import type { PaymentPayload } from '../../x402/payload.ts'
import type { PaymentRequirements, Refusal } from '../../x402/payment-requirements.ts'

/** A signature must live this much longer than now, or it ends before its transaction is in a block. */
export const SETTLE_SECONDS = 6
/**
 * A signature may outlive maxTimeoutSeconds by this much (a clock that is ahead, a client with a default of its own),
 * so that every payment is either settled or dead within a known time.
 */
export const SLACK_SECONDS = 3_600

/** A buyer's clock may be ahead of ours by this much: a payment that begins so soon is waited for. */
const SKEW_SECONDS = 5n

/** The reason of a signature that is not the payer's key's. A contract wallet's may be good all the same. */
export const NOT_SIGNED = 'invalid_exact_evm_payload_signature'

const HALF_ORDER = Buffer.from('7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0', 'hex')
const DOMAIN_TYPE = 'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'
const TRANSFER_TYPE =
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)'

/** Null: the payment is what was asked and its payer signed it. */
export type Exact = (payload: PaymentPayload, requirements: PaymentRequirements, nowSeconds: number) => Refusal | null

export type Authorization = Pick<PaymentPayload, 'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce'>

/** Builds the check for one network; the domain separator is computed here, once. */
export function createExact(network: Network): Exact {
  const digestOf = createDigest(network)
  return (payload, requirements, nowSeconds) =>
    asked(payload, requirements) ??
    agreed(payload, requirements) ??
    inTime(payload, requirements, BigInt(nowSeconds)) ??
    signed(payload, network, digestOf)
}

/** The check of several networks: each payment is checked on the network that is asked. */
export function createExactOn(networks: readonly Network[]): Exact {
  const checks = new Map(networks.map((network) => [network.caip2, createExact(network)]))
  return (payload, requirements, nowSeconds) => {
    const check = checks.get(requirements.network.caip2)
    if (!check) throw new Error(`No payments are taken on ${requirements.network.caip2}.`)
    return check(payload, requirements, nowSeconds)
  }
}

/**
 * EIP-712 digest of a TransferWithAuthorization, equal to viem's hashTypedData. The returned function reuses its
 * buffers: the digest is valid until the next call.
 */
export function createDigest({ domain, chainId, asset }: Network): (authorization: Authorization) => Uint8Array {
  const separator = keccak_256(
    Buffer.concat([
      keccak(DOMAIN_TYPE),
      keccak(domain.name),
      keccak(domain.version),
      word(chainId.toString(16)),
      word(asset.slice(2)),
    ]),
  )
  const struct = Buffer.alloc(224)
  keccak(TRANSFER_TYPE).copy(struct)
  const message = Buffer.concat([Buffer.from([0x19, 0x01]), separator, Buffer.alloc(32)])
  return ({ from, to, value, validAfter, validBefore, nonce }) => {
    struct.write(from.slice(2), 44, 'hex')
    struct.write(to.slice(2), 76, 'hex')
    struct.write(value.toString(16).padStart(64, '0'), 96, 'hex')
    struct.write(validAfter.toString(16).padStart(64, '0'), 128, 'hex')
    struct.write(validBefore.toString(16).padStart(64, '0'), 160, 'hex')
    struct.write(nonce.slice(2), 192, 'hex')
    message.set(keccak_256(struct), 34)
    return keccak_256(message)
  }
}

function keccak(text: string): Buffer {
  return Buffer.from(keccak_256(Buffer.from(text)))
}

function word(hex: string): Buffer {
  return Buffer.from(hex.padStart(64, '0'), 'hex')
}

function asked(payload: PaymentPayload, requirements: PaymentRequirements): Refusal | null {
  const { scheme, network, payTo, amount } = requirements
  if (payload.scheme !== scheme) return refusal('unsupported_scheme', `Pay with the scheme "${scheme}".`)
  if (payload.network !== network.caip2)
    return refusal('invalid_network', `The payment is for ${payload.network}; pay on ${network.caip2}.`)
  if (!same(payload.to, payTo))
    return refusal(
      'invalid_exact_evm_payload_recipient_mismatch',
      `The payment goes to ${payload.to}; it must go to ${payTo}.`,
    )
  if (payload.value === amount) return null
  const side = payload.value < amount ? 'below' : 'above'
  return refusal(
    'invalid_exact_evm_payload_authorization_value_mismatch',
    `The amount ${payload.value} is ${side} the price of ${amount}; ask for a fresh quote.`,
  )
}

/** v2 says again what it accepted. It must be what was offered, in the fields that move money. */
function agreed({ accepted }: PaymentPayload, { scheme, network, amount, payTo }: PaymentRequirements): Refusal | null {
  if (accepted === null) return null
  const differing = [
    ['scheme', accepted['scheme'] === scheme],
    ['network', findNetwork([network], accepted['network']) !== undefined],
    ['amount', accepted['amount'] === String(amount)],
    ['asset', same(accepted['asset'], network.asset)],
    ['payTo', same(accepted['payTo'], payTo)],
  ].find(([, agrees]) => !agrees)
  if (!differing) return null
  const message = `accepted.${differing[0]} is not what was offered; ask for a fresh quote.`
  return refusal('invalid_payment_requirements', message)
}

/** The token wants validAfter < block time < validBefore. */
function inTime(payload: PaymentPayload, { maxTimeoutSeconds }: PaymentRequirements, now: bigint): Refusal | null {
  const { validAfter, validBefore } = payload
  if (validAfter > now + SKEW_SECONDS)
    return refusal(
      'invalid_exact_evm_payload_authorization_valid_after',
      `The payment is valid only after ${validAfter}; it is ${now}.`,
    )
  if (validBefore < now + BigInt(SETTLE_SECONDS))
    return refusal(
      'invalid_exact_evm_payload_authorization_valid_before',
      `The payment ends at ${validBefore} and it is ${now}: too late to settle. Sign a fresh one.`,
    )
  const latest = now + BigInt(maxTimeoutSeconds + SLACK_SECONDS)
  if (validBefore > latest)
    return refusal(
      'invalid_exact_evm_payload_authorization_valid_before',
      `validBefore ${validBefore} is too far ahead; sign until ${now + BigInt(maxTimeoutSeconds)}.`,
    )
  return null
}

function signed(
  payload: PaymentPayload,
  { domain, chainId, asset }: Network,
  digestOf: (authorization: Authorization) => Uint8Array,
): Refusal | null {
  const signature = Buffer.from(payload.signature.slice(2), 'hex')
  const v = signature[64]
  if (signature.length !== 65 || (v !== 27 && v !== 28))
    return unsigned('The signature must be r, s and v: 65 bytes, v 27 or 28.')
  if (signature.compare(HALF_ORDER, 0, 32, 32, 64) > 0) return unsigned('The signature has a high s; use the low one.')
  try {
    const key = secp256k1.ecdsaRecover(signature.subarray(0, 64), v - 27, digestOf(payload), false)
    const signer = Buffer.from(keccak_256(key.subarray(1)).subarray(12)).toString('hex')
    if (same(`0x${signer}`, payload.from)) return null
  } catch {
    return unsigned('The signature is not a point on the curve.')
  }
  return unsigned(
    `The payer did not sign this. The domain is "${domain.name}", version "${domain.version}", chain ${chainId}, contract ${asset}.`,
  )
}

function same(one: unknown, other: string): boolean {
  return typeof one === 'string' && one.toLowerCase() === other.toLowerCase()
}

function unsigned(message: string): Refusal {
  return refusal(NOT_SIGNED, message)
}

function refusal(reason: string, message: string): Refusal {
  return { reason, message }
}
