import { keccak_256 as inJavaScript } from '@noble/hashes/sha3.js'
import { createKeccak, type IHasher } from 'hash-wasm'

let webAssembly: IHasher | null = null
/** Resolves when `keccak256` runs in WebAssembly. */
export const keccakCompiled: Promise<void> = createKeccak(256).then(
  (made) => void (webAssembly = made),
  () => {},
)

/**
 * Keccak-256, the hash of Ethereum: SHA-3 as it was before NIST changed its padding. Node's crypto does not have it.
 * WebAssembly takes an eighth of the time of JavaScript, which runs until the other is compiled, or where it is not allowed.
 *
 * Source: https://keccak.team/files/Keccak-submission-3.pdf. The hash of no bytes begins with c5d24601.
 */
export function keccak256(bytes: Uint8Array): Uint8Array {
  return webAssembly ? webAssembly.init().update(bytes).digest('binary') : inJavaScript(bytes)
}
