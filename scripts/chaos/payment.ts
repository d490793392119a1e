/** Signs payments natively: the load must not be the signing. */
import { randomBytes } from 'node:crypto'
import secp256k1 from 'secp256k1'
import { privateKeyToAddress } from 'viem/accounts'
import { createDigest } from '../../gateway/methods/exact-evm/authorization-check.ts'
import type { Hex, Network } from '../../gateway/config/networks.ts'

/** What an offer asks, as its `accepts` entry of x402 v2 says it. */
export interface Asked {
  readonly amount: string
  readonly payTo: Hex
  readonly maxTimeoutSeconds: number
}

export interface Signed {
  /** Value of PAYMENT-SIGNATURE. */
  readonly header: string
  readonly payer: Hex
  readonly nonce: Hex
}

export function createSigner(network: Network, key: Hex): (asked: Asked) => Signed {
  const digestOf = createDigest(network)
  const secret = Buffer.from(key.slice(2), 'hex')
  const payer = privateKeyToAddress(key)
  return (accepted) => {
    const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
    const validBefore = Math.floor(Date.now() / 1000) + accepted.maxTimeoutSeconds
    const times = { validAfter: 0n, validBefore: BigInt(validBefore) }
    const { payTo: to } = accepted
    const { signature, recid } = secp256k1.ecdsaSign(
      digestOf({ from: payer, to, value: BigInt(accepted.amount), nonce, ...times }),
      secret,
    )
    const words = { from: payer, to, value: accepted.amount, validAfter: '0', validBefore: String(validBefore), nonce }
    const bytes = `0x${Buffer.from(signature).toString('hex')}${(27 + recid).toString(16)}`
    const payload = { x402Version: 2, accepted, payload: { signature: bytes, authorization: words } }
    return { header: Buffer.from(JSON.stringify(payload)).toString('base64'), payer, nonce }
  }
}
