/** A buyer's wallet. It signs x402 payments of both versions with viem, as real clients do. */
import { randomBytes } from 'node:crypto'
import { getAddress, type LocalAccount } from 'viem'
import { NETWORKS, type Hex } from '../../gateway/config/networks.ts'

/** One entry of `accepts`, of either version. */
export interface Requirement {
  readonly scheme: string
  readonly network: string
  readonly amount?: string
  readonly maxAmountRequired?: string
  readonly asset: Hex
  readonly payTo: Hex
  readonly maxTimeoutSeconds: number
  readonly extra: { readonly name: string; readonly version: string }
}

export interface Authorization {
  readonly from: Hex
  readonly to: Hex
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: Hex
}

export interface PaymentOptions {
  readonly account: LocalAccount
  readonly requirement: Requirement
  readonly version: 1 | 2
  /** Fields to sign instead of those that the requirement asks for. */
  readonly signed?: Partial<Authorization>
  /** Fields to write into the payload instead of those that were signed. */
  readonly claimed?: Partial<Authorization>
  readonly nowSeconds?: number
  /** Additional fields of the envelope, e.g. resource and extensions of v2. */
  readonly envelope?: Readonly<Record<string, unknown>>
}

/** EIP-712 types of an EIP-3009 authorization. */
export const TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

function chainIdOf(network: string): number {
  const known = Object.values(NETWORKS).find(({ name, caip2 }) => network === name || network === caip2)
  if (!known) throw new Error(`Unknown network ${network}.`)
  return known.chainId
}

export function newNonce(): Hex {
  return `0x${randomBytes(32).toString('hex')}`
}

/** The input of viem's signTypedData for an authorization. */
export function typedData({ network, asset, extra }: Requirement, authorization: Authorization) {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  return {
    domain: { ...extra, chainId: chainIdOf(network), verifyingContract: asset },
    types: TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      from,
      to,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce,
    },
  } as const
}

/** Creates the payload object of a payment, as the reference clients do. */
export async function createPayment(options: PaymentOptions): Promise<Record<string, unknown>> {
  const { account, requirement, version, signed, claimed, envelope } = options
  const now = options.nowSeconds ?? Math.floor(Date.now() / 1000)
  const authorization: Authorization = {
    from: account.address,
    to: getAddress(requirement.payTo),
    value: requirement.amount ?? requirement.maxAmountRequired ?? '',
    validAfter: version === 1 ? String(now - 600) : '0',
    validBefore: String(now + requirement.maxTimeoutSeconds),
    nonce: newNonce(),
    ...signed,
  }
  const signature = await account.signTypedData(typedData(requirement, authorization))
  const payload = { signature, authorization: { ...authorization, ...claimed } }
  const { scheme, network } = requirement
  return version === 1
    ? { x402Version: 1, scheme, network, payload, ...envelope }
    : { x402Version: 2, accepted: requirement, payload, ...envelope }
}

/** Creates the header value of a payment: its payload object in base64. */
export async function signPayment(options: PaymentOptions): Promise<string> {
  return base64(await createPayment(options))
}

export function base64(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}
