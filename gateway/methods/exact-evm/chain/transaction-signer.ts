/**
 * Signs EIP-1559 transactions with the gas key. Native code (libsecp256k1) does it many times faster than JavaScript.
 */
import secp256k1 from 'secp256k1'
import { getAddress, hexToBytes, keccak256, serializeTransaction } from 'viem/utils'
import type { Awaitable } from '../../../awaitable.ts'
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

export interface SignedTransaction {
  readonly raw: Hex
  readonly hash: Hex
}

export interface Signer {
  readonly address: Hex
  /** Throws RpcError `unsent` if the process that holds the key does not sign. */
  sign(transaction: UnsignedTransaction): Awaitable<SignedTransaction>
  /** Why it would sign nothing now, whatever it was asked; null if it would. */
  obstacle?(): string | null
}

/** A signer in this process. */
export interface LocalSigner extends Signer {
  sign(transaction: UnsignedTransaction): SignedTransaction
}

/**
 * Returns the address of a private key with its checksum (EIP-55).
 * @example addressOf('0x' + '1'.padStart(64, '0')) → '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf'
 */
export function addressOf(key: Hex): Hex {
  const publicKey = secp256k1.publicKeyCreate(hexToBytes(key), false).subarray(1)
  return getAddress(`0x${keccak256(publicKey).slice(-40)}`)
}

/** Creates the signer of one key on one chain. */
export function createSigner(key: Hex, chainId: number): LocalSigner {
  const secret = hexToBytes(key)
  return {
    address: addressOf(key),
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
