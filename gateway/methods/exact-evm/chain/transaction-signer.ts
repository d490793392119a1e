/**
 * Signs EIP-1559 transactions with the gas key. Native code (libsecp256k1) does it many times faster than JavaScript.
 */
import secp256k1 from 'secp256k1'
import { getAddress, hexToBytes, keccak256, serializeTransaction } from 'viem/utils'
import type { Hex } from '../../../config/networks.ts'

export interface Fees {
  /** Wei per unit of gas. */
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

export interface UnsignedTransaction extends Fees {
  readonly to: Hex
  readonly data: Hex
  readonly gas: bigint
  readonly nonce: number
}

export interface Signer {
  readonly address: Hex
  sign(transaction: UnsignedTransaction): { readonly raw: Hex; readonly hash: Hex }
}

/** Creates the signer of one key on one chain. */
export function createSigner(key: Hex, chainId: number): Signer {
  const secret = hexToBytes(key)
  const publicKey = secp256k1.publicKeyCreate(secret, false).subarray(1)
  const address = getAddress(`0x${keccak256(publicKey).slice(-40)}`)
  return {
    address,
    sign(transaction) {
      const to = transaction.to.toLowerCase() as Hex
      const fields = { ...transaction, to, chainId, type: 'eip1559' } as const
      const { signature, recid } = secp256k1.ecdsaSign(keccak256(serializeTransaction(fields), 'bytes'), secret)
      const half = (from: number): Hex => `0x${Buffer.from(signature.subarray(from, from + 32)).toString('hex')}`
      const raw = serializeTransaction(fields, { r: half(0), s: half(32), yParity: recid })
      return { raw, hash: keccak256(raw) }
    },
  }
}
