/**
 * The keys with which products sign attestations: secp256k1 keys whose signatures (EIP-191, "personal sign") a contract
 * can verify. They are derived from the token key, so that all processes with the same TOKEN_KEYS share them and none
 * is stored. A product replaces its key by taking the next serial number.
 */
import { hkdfSync } from 'node:crypto'
import type { JWK } from 'jose'
import secp256k1 from 'secp256k1'
import { bytesToHex, hashMessage, hexToBytes, publicKeyToAddress } from 'viem/utils'
import type { Awaitable } from '../awaitable.ts'

type Hex = `0x${string}`

export interface AttestationKey {
  readonly address: Hex
  /** Uncompressed point. */
  readonly publicKey: Hex
}

/** Signs for products. It may be another process that holds the keys. */
export interface Attestations {
  key(product: string, serial: number): Awaitable<AttestationKey>
  /** Signs a text as EIP-191 "personal sign". */
  sign(product: string, serial: number, text: string): Awaitable<Hex>
}

/**
 * The variable with which the operator sets a private key of their own, in place of all derived keys of a product.
 * @example attestationVariable('gold-rate') → "ATTESTATION_KEY_GOLD_RATE"
 */
function attestationVariable(product: string): string {
  return `ATTESTATION_KEY_${product.replaceAll('-', '_').toUpperCase()}`
}

/**
 * Opens the keys of all products. `key` and `sign` throw RangeError if the operator's key is malformed.
 *
 * @param jwk the token key
 * @param variable returns the value of an environment variable, or null
 */
export function openAttestations(jwk: JWK, variable: (name: string) => string | null): Attestations {
  const keyOf = (product: string, serial: number): Uint8Array => {
    const own = variable(attestationVariable(product))
    if (own === null) return derivedKey(jwk, product, serial)
    if (!/^0x[0-9a-f]{64}$/i.test(own))
      throw new RangeError(`${attestationVariable(product)} must be a private key: 0x and 64 hex digits.`)
    return hexToBytes(own as Hex)
  }
  return {
    key(product, serial) {
      const publicKey = bytesToHex(secp256k1.publicKeyCreate(keyOf(product, serial), false))
      return { address: publicKeyToAddress(publicKey), publicKey }
    },
    sign(product, serial, text) {
      const { signature, recid } = secp256k1.ecdsaSign(hashMessage(text, 'bytes'), keyOf(product, serial))
      return `${bytesToHex(signature)}${(27 + recid).toString(16)}`
    },
  }
}

function derivedKey({ d }: JWK, product: string, serial: number): Uint8Array {
  const secret = Buffer.from(d as string, 'base64url')
  for (let info = `attestation ${product} ${serial}`; ; info += ' ') {
    const key = new Uint8Array(hkdfSync('sha256', secret, '', info, 32))
    // Fails for one key in 2^128.
    if (secp256k1.privateKeyVerify(key)) return key
  }
}
