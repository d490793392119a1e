/** Payments for `npm run lab -- bench`: many wallets, each payment used once, signed natively before they are sent. */
import { randomBytes } from 'node:crypto'
import secp256k1 from 'secp256k1'
import type { Hex } from '../../../../gateway/config/networks.ts'
import { keccak256 } from '../../../../gateway/keccak-256.ts'
import { createDigest } from '../../../../gateway/methods/exact-evm/authorization-check.ts'
import { envelopeOfV2, readRequirement, type Requirement } from '../../../../gateway/client/payment.ts'

export interface Wallet {
  readonly secret: Buffer
  readonly address: Hex
}

/** The payment object: its envelope, and what the wallet has signed. */
export interface SignedPayment {
  readonly payload: {
    readonly signature: Hex
    readonly authorization: { readonly from: Hex; readonly value: string; readonly nonce: Hex }
  }
}

/** Makes wallets with random keys. */
export function newWallets(count: number): readonly Wallet[] {
  return Array.from({ length: count }, () => {
    const secret = randomBytes(32)
    const key = secp256k1.publicKeyCreate(secret, false).subarray(1)
    return { secret, address: `0x${Buffer.from(keccak256(key)).subarray(12).toString('hex')}` as const }
  })
}

/** Returns a function that signs a payment of x402 v2 for this requirement, by the wallets in turn unless one is named. */
export function createBuyer(wallets: readonly Wallet[], requirement: Requirement): (by?: Wallet) => SignedPayment {
  const { network, amount, payTo, maxTimeoutSeconds } = requirement
  const digestOf = createDigest(network)
  let count = 0
  const next = (): Wallet => wallets[count++ % wallets.length] as Wallet
  return (by = next()) => {
    const { secret, address: from } = by
    const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + maxTimeoutSeconds)
    const terms = { from, to: payTo, value: amount, validAfter: 0n, validBefore, nonce }
    const { signature, recid } = secp256k1.ecdsaSign(digestOf(terms), secret)
    const authorization = {
      from,
      to: payTo,
      value: String(amount),
      validAfter: '0',
      validBefore: String(validBefore),
      nonce,
    }
    const proof: Hex = `0x${Buffer.from(signature).toString('hex')}${(27 + recid).toString(16)}`
    return { ...envelopeOfV2(requirement), payload: { signature: proof, authorization } }
  }
}

/** Changes one byte of a payment's signature. */
export function forge(payment: object): object {
  const { payload } = payment as { readonly payload: { readonly signature: string } }
  const { signature } = payload
  const changed = `${signature.slice(0, 20)}${signature[20] === '0' ? '1' : '0'}${signature.slice(21)}`
  return { ...payment, payload: { ...payload, signature: changed } }
}

/** The value of the header PAYMENT-SIGNATURE. */
export function headerOf(payment: object): string {
  return Buffer.from(JSON.stringify(payment)).toString('base64')
}

/** Reads what a route asks for. */
export async function requirementOf(url: string, method = 'GET'): Promise<Requirement> {
  const response = await fetch(url, { method })
  return readRequirement(response.headers.get('payment-required'), await response.text(), false)
}
