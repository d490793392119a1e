/**
 * The offline check of scheme "exact" on EVM: an EIP-3009 TransferWithAuthorization against the requirements. Cheap
 * checks come first and the one signature recovery last. Recovery is native (libsecp256k1) where the package has a
 * build.
 */
import secp256k1 from 'secp256k1'
import { findNetwork, type Network } from '../../config/networks.ts'
import { keccak256 } from '../../keccak-256.ts'
import { dollars } from '../../dollars.ts'
import type { PaymentRequirements, Refusal } from '../../x402/payment-requirements.ts'
import type { DecodedPayment, OfflineRefusal, PaymentMethod } from '../payment-method.ts'
import { type Authorization, type Transfer, transferOf } from './eip3009.ts'

/** A signature must be valid for at least this long, so that its transaction can get into a block. */
export const SETTLE_SECONDS = 6
/**
 * A signature may be valid this much longer than maxTimeoutSeconds, because a clock is ahead or a client has a default
 * of its own. The limit makes sure that every payment is settled or expired within a known time.
 */
export const SLACK_SECONDS = 3_600

/** How far a buyer's clock may be ahead of ours: the gateway waits for a payment that becomes valid so soon. */
const SKEW_SECONDS = 5n

const HALF_ORDER = Buffer.from('7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0', 'hex')
const DOMAIN_TYPE = 'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'
const TRANSFER_TYPE =
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)'

/** Creates the check for one network. It returns null if the payment meets the requirements and its payer signed it. */
export function createAuthorizationCheck(network: Network): PaymentMethod['verify'] {
  const digestOf = createDigest(network)
  return (payment, requirements, nowSeconds) =>
    checkTerms(payment, requirements) ??
    checkAccepted(payment.envelope, requirements) ??
    checkTime(payment, requirements, BigInt(nowSeconds)) ??
    checkSignature(transferOf(payment), network, digestOf)
}

/** Returns a function that says whether the key of the payer's own address signed a transfer. */
export function createKeyCheck(network: Network): (transfer: Transfer) => boolean {
  const digestOf = createDigest(network)
  return (transfer) => checkSignature(transfer, network, digestOf) === null
}

/**
 * EIP-712 digest of a TransferWithAuthorization, equal to viem's hashTypedData. The returned function reuses its
 * buffers: the digest is valid until the next call.
 */
export function createDigest({ domain, chainId, asset }: Network): (authorization: Authorization) => Uint8Array {
  const separator = keccak256(
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
    message.set(keccak256(struct), 34)
    return keccak256(message)
  }
}

function keccak(text: string): Buffer {
  return Buffer.from(keccak256(Buffer.from(text)))
}

function word(hex: string): Buffer {
  return Buffer.from(hex.padStart(64, '0'), 'hex')
}

function checkTerms(payment: DecodedPayment, requirements: PaymentRequirements): Refusal | null {
  const { scheme, network, payTo, amount } = requirements
  if (payment.envelope.scheme !== scheme) return refusal('unsupported_scheme', `Pay with the scheme "${scheme}".`)
  if (payment.network !== network.caip2)
    return refusal('invalid_network', `The payment is for ${payment.network}; pay on ${network.caip2}.`)
  if (!same(payment.payTo, payTo))
    return refusal(
      'invalid_exact_evm_payload_recipient_mismatch',
      `The payment goes to ${payment.payTo}; it must go to ${payTo}.`,
    )
  if (payment.amount === amount) return null
  const side = payment.amount < amount ? 'below' : 'above'
  return refusal(
    'invalid_exact_evm_payload_authorization_value_mismatch',
    `The amount of ${dollars(payment.amount)} USDC is ${side} the price of ${dollars(amount)} USDC; request a new quote.`,
  )
}

/** A v2 client repeats the entry it accepted. The fields that move money must be those that were offered. */
function checkAccepted(
  { accepted }: DecodedPayment['envelope'],
  { scheme, network, amount, payTo }: PaymentRequirements,
): Refusal | null {
  if (accepted === null) return null
  const differing = [
    ['scheme', accepted['scheme'] === scheme],
    ['network', findNetwork([network], accepted['network']) !== undefined],
    ['amount', accepted['amount'] === String(amount)],
    ['asset', same(accepted['asset'], network.asset)],
    ['payTo', same(accepted['payTo'], payTo)],
  ].find(([, agrees]) => !agrees)
  if (!differing) return null
  const message = `accepted.${differing[0]} is not what was offered; request a new quote.`
  return refusal('invalid_payment_requirements', message)
}

/** The token requires validAfter < block time < validBefore. */
function checkTime(
  { startsAt, expiresAt }: DecodedPayment,
  { maxTimeoutSeconds }: PaymentRequirements,
  now: bigint,
): Refusal | null {
  if (startsAt > now + SKEW_SECONDS)
    return refusal(
      'invalid_exact_evm_payload_authorization_valid_after',
      `The payment is valid only after ${timeOf(startsAt)}; it is ${timeOf(now)}.`,
    )
  if (expiresAt < now + BigInt(SETTLE_SECONDS))
    return refusal(
      'invalid_exact_evm_payload_authorization_valid_before',
      `The payment ends at ${timeOf(expiresAt)} and it is ${timeOf(now)}: too late to settle. Sign a fresh one.`,
    )
  const latest = now + BigInt(maxTimeoutSeconds + SLACK_SECONDS)
  if (expiresAt > latest)
    return refusal(
      'invalid_exact_evm_payload_authorization_valid_before',
      `The payment ends ${expiresAt > LAST_YEAR ? 'after' : 'at'} ${timeOf(expiresAt)}, too far ahead; sign until ${timeOf(now + BigInt(maxTimeoutSeconds))}.`,
    )
  return null
}

/** The last second of the year 9999: a signature may name any second until 2^256. */
const LAST_YEAR = 253_402_300_799n

/** Formats seconds since the epoch. @example timeOf(1_800_000_000n) → "2027-01-15T08:00:00Z" */
function timeOf(seconds: bigint): string {
  if (seconds > LAST_YEAR) return 'the year 9999'
  return new Date(Number(seconds) * 1000).toISOString().replace('.000Z', 'Z')
}

function checkSignature(
  transfer: Transfer,
  { domain, chainId, asset }: Network,
  digestOf: (authorization: Authorization) => Uint8Array,
): OfflineRefusal | null {
  const signature = Buffer.from(transfer.signature.slice(2), 'hex')
  // Only a contract wallet makes longer ones.
  if (signature.length > 65) return unsigned(FORM)
  const v = signature[64] ?? 0
  // A Safe with one owner: its hash was approved (1), or the owner signed it as a message (31, 32).
  if ([1, 31, 32].includes(v)) return unsigned(FORM)
  if (v !== 27 && v !== 28) return wrong(FORM)
  if (signature.compare(HALF_ORDER, 0, 32, 32, 64) > 0) return wrong('The signature has a high s; use the low one.')
  try {
    const key = secp256k1.ecdsaRecover(signature.subarray(0, 64), v - 27, digestOf(transfer), false)
    const signer = Buffer.from(keccak256(key.subarray(1)).subarray(12)).toString('hex')
    if (same(`0x${signer}`, transfer.from)) return null
  } catch {
    return wrong('The signature is not a point on the curve.')
  }
  return unsigned(
    `The payer did not sign this. The domain is "${domain.name}", version "${domain.version}", chain ${chainId}, contract ${asset}.`,
  )
}

function same(one: unknown, other: string): boolean {
  return typeof one === 'string' && one.toLowerCase() === other.toLowerCase()
}

const FORM = 'The signature must be r, s and v: 65 bytes, v 27 or 28.'

/** No key made this signature, neither the payer's nor one that owns a contract wallet. */
function wrong(message: string): OfflineRefusal {
  return refusal('invalid_exact_evm_payload_signature', message)
}

/** The payer may be a contract wallet, whose signature only a call to the chain can verify. */
function unsigned(message: string): OfflineRefusal {
  return { ...wrong(message), needsSettler: true }
}

function refusal(reason: string, message: string): Refusal {
  return { reason, message }
}
