/** Reads what a 402 asks for and signs the payment: an EIP-3009 authorization in the envelope of x402 v1 or v2. */
import { randomBytes } from 'node:crypto'
import type { LocalAccount } from 'viem'
import { getAddress } from 'viem/utils'
import { findNetwork, type Hex, type Network, NETWORKS } from '../config/networks.ts'

/** Nothing was signed. The message says why. */
export class NotPaid extends Error {
  override readonly name = 'NotPaid'
}

/** A wallet that signs: `privateKeyToAccount` of viem makes one of a private key. */
export type Signer = Pick<LocalAccount, 'address' | 'signTypedData'>

type Fields = Readonly<Record<string, unknown>>

export interface Requirement {
  readonly version: 1 | 2
  readonly network: Network
  readonly amount: bigint
  readonly payTo: Hex
  readonly maxTimeoutSeconds: number
  readonly description: string
  /** The entry of `accepts` as received: a v2 payment repeats it. */
  readonly accepted: Fields
  readonly resource: unknown
  readonly extensions: Fields | null
}

/**
 * Reads a 402, x402 v2 from the PAYMENT-REQUIRED header and v1 from the body, and returns the first entry of `accepts`
 * that this client can pay: scheme exact, USDC by EIP-3009, on Base or Base Sepolia. `v1` prefers version 1. Throws
 * NotPaid if there is none.
 */
export function readRequirement(header: string | null, body: string, v1: boolean): Requirement {
  const both = { 1: objectOf(body), 2: header === null ? null : objectOf(Buffer.from(header, 'base64').toString()) }
  const order = v1 ? ([1, 2] as const) : ([2, 1] as const)
  const reasons: string[] = []
  for (const version of order) {
    const { accepts } = both[version] ?? {}
    for (const entry of Array.isArray(accepts) ? (accepts as Fields[]) : []) {
      const requirement = requirementOf(version, entry, both[version] as Fields)
      if (typeof requirement !== 'string') return requirement
      reasons.push(requirement)
    }
  }
  throw new NotPaid(
    reasons.length === 0
      ? 'The 402 has no payment requirements, neither in the PAYMENT-REQUIRED header nor in the body.'
      : `This client can pay none of the requirements of the 402: ${[...new Set(reasons)].join('; ')}.`,
  )
}

/** Returns the requirement, or why this client cannot pay it. */
function requirementOf(version: 1 | 2, entry: Fields, envelope: Fields): Requirement | string {
  const network = findNetwork(Object.values(NETWORKS), entry['network'])
  if (entry['scheme'] !== 'exact') return `scheme ${String(entry['scheme'])} is not supported`
  if (!network) return `network ${String(entry['network'])} is not supported`
  const { asset, payTo, extra, maxTimeoutSeconds } = entry
  if (String(asset).toLowerCase() !== network.asset.toLowerCase())
    return `${String(asset)} is not USDC on ${network.name}`
  const method = (extra as Fields | undefined)?.['assetTransferMethod'] ?? 'eip3009'
  if (method !== 'eip3009') return `transfer by ${JSON.stringify(method)} is not supported`
  const amount = String(version === 2 ? entry['amount'] : entry['maxAmountRequired'])
  if (!/^\d+$/.test(amount)) return `the amount ${amount} is not a whole number`
  if (!/^0x[0-9a-f]{40}$/i.test(String(payTo))) return `the payee ${String(payTo)} is not an address`
  const resource = version === 2 ? envelope['resource'] : entry['resource']
  const { description } = version === 2 ? ((resource ?? {}) as Fields) : entry
  return {
    version,
    network,
    amount: BigInt(amount),
    payTo: payTo as Hex,
    maxTimeoutSeconds: Number(maxTimeoutSeconds) > 0 ? Number(maxTimeoutSeconds) : 60,
    description: typeof description === 'string' ? description : '',
    accepted: entry,
    resource,
    extensions: (envelope['extensions'] as Fields | undefined) ?? null,
  }
}

function objectOf(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Fields) : null
  } catch {
    return null
  }
}

/** A signed payment. It is plain JSON, to be kept and sent again, perhaps by another process. */
export interface Payment {
  readonly header: 'PAYMENT-SIGNATURE' | 'X-PAYMENT'
  /** Base64, ready to send. */
  readonly value: string
  /** Names the purchase, and proves to be its buyer when the answer or the state is fetched again. Keep it to yourself. */
  readonly id: string
  /** The Idempotency-Key to send with it, which is `id`. Null for v2: `value` has it if the service reads it. */
  readonly purchaseKey: string | null
  /** Name of the network, e.g. "base". */
  readonly network: string
  /** Atomic units. */
  readonly amount: string
  readonly from: Hex
  readonly nonce: Hex
  /** Seconds since the epoch. */
  readonly validBefore: number
}

const TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** Signs one payment of exactly this amount to this payee, valid until the requirement's timeout. */
export async function signPayment(requirement: Requirement, account: Signer, nowSeconds: number): Promise<Payment> {
  const { network, amount, payTo, maxTimeoutSeconds, version } = requirement
  const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
  const validAfter = version === 1 ? nowSeconds - 600 : 0
  const validBefore = nowSeconds + maxTimeoutSeconds
  const id = newId()
  const signature = await account.signTypedData({
    // The domain of the real token, not the one that the service claims.
    domain: { ...network.domain, chainId: network.chainId, verifyingContract: network.asset },
    types: TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: account.address,
      to: getAddress(payTo),
      value: amount,
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce,
    },
  })
  const authorization = {
    from: account.address,
    to: payTo,
    value: String(amount),
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce,
  }
  const envelope = version === 1 ? envelopeOfV1(requirement) : envelopeOfV2(requirement, id)
  return {
    header: version === 1 ? 'X-PAYMENT' : 'PAYMENT-SIGNATURE',
    value: Buffer.from(JSON.stringify({ ...envelope, payload: { signature, authorization } })).toString('base64'),
    id,
    purchaseKey: version === 1 ? id : null,
    network: network.name,
    amount: String(amount),
    from: account.address,
    nonce,
    validBefore,
  }
}

const newId = (): string => randomBytes(16).toString('hex')

function envelopeOfV1({ network }: Requirement): object {
  return { x402Version: 1, scheme: 'exact', network: network.name }
}

/**
 * The envelope of v2 without the payload: repeats the declared extensions, and adds a payment identifier if the service
 * asks for one.
 */
export function envelopeOfV2({ accepted, resource, extensions }: Requirement, id = newId()): object {
  const identifier = extensions?.['payment-identifier'] as { readonly info?: object } | undefined
  const identified = identifier
    ? {
        'payment-identifier': {
          ...identifier,
          info: { ...identifier.info, id },
        },
      }
    : {}
  return {
    x402Version: 2,
    ...(resource === undefined ? {} : { resource }),
    accepted,
    ...(extensions === null ? {} : { extensions: { ...extensions, ...identified } }),
  }
}
