/** Signs what an offer asks for: an EIP-3009 authorization in the envelope of its x402 version. */
import { randomBytes } from 'node:crypto'
import { privateKeyToAccount } from 'viem/accounts'
import { getAddress } from 'viem/utils'
import type { Hex } from '../../gateway/config/networks.ts'
import type { Offer } from './offer.ts'

export interface Payment {
  readonly header: 'PAYMENT-SIGNATURE' | 'X-PAYMENT'
  /** Base64, ready to send. */
  readonly value: string
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

/** A signature for exactly this amount, to this payee, once, until the offer's time is over. */
export async function signPayment(offer: Offer, key: Hex, nowSeconds: number): Promise<Payment> {
  const account = privateKeyToAccount(key)
  const { network, amount, payTo, maxTimeoutSeconds, version } = offer
  const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
  const validAfter = version === 1 ? nowSeconds - 600 : 0
  const validBefore = nowSeconds + maxTimeoutSeconds
  const signature = await account.signTypedData({
    // The token's own name and version decide, not what a service says they are.
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
  const envelope = version === 1 ? envelopeOfV1(offer) : envelopeOfV2(offer)
  return {
    header: version === 1 ? 'X-PAYMENT' : 'PAYMENT-SIGNATURE',
    value: Buffer.from(JSON.stringify({ ...envelope, payload: { signature, authorization } })).toString('base64'),
    from: account.address,
    nonce,
    validBefore,
  }
}

function envelopeOfV1({ network }: Offer): object {
  return { x402Version: 1, scheme: 'exact', network: network.name }
}

/** Extensions are said again; a service that wants a payment identifier gets one. */
function envelopeOfV2({ accepted, resource, extensions }: Offer): object {
  const wanted = extensions?.['payment-identifier'] as { readonly info?: object } | undefined
  const identified = wanted
    ? { 'payment-identifier': { ...wanted, info: { ...wanted.info, id: `pay_${randomBytes(16).toString('hex')}` } } }
    : {}
  return {
    x402Version: 2,
    ...(resource === undefined ? {} : { resource }),
    accepted,
    ...(extensions === null ? {} : { extensions: { ...extensions, ...identified } }),
  }
}
