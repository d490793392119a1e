/** Where payments go: the networks payments are taken on, and the wallet that is paid on each. */
import { keccak256 } from '../keccak-256.ts'
import type { Hex, Network } from './networks.ts'

/** The wallet that is paid on one network. */
export interface Recipient {
  readonly network: Network
  readonly payTo: Hex
}

/** The leading network, which documents name when they name one network, and the other networks. */
export interface Recipients extends Recipient {
  readonly others?: readonly Recipient[]
}

/** Lists all recipients, the leading network first. */
export function recipientsOf({ network, payTo, others = [] }: Recipients): readonly [Recipient, ...Recipient[]] {
  return [{ network, payTo }, ...others]
}

/** A note on PAY_TO for operators. Two journals would each take a transfer for their own sale. */
export const ONE_JOURNAL = 'One PAY_TO needs one journal: gateways that share it must share DATABASE_URL.'

/**
 * Whether the capital letters of an address contradict it (EIP-55): then at least one character is mistyped. An address in
 * letters of one case has no checksum. Every command reads the configuration, and viem takes a fifth of a second to load.
 */
export function isMistyped(address: string): boolean {
  const hex = address.slice(2)
  const lower = hex.toLowerCase()
  if (hex === lower || hex === hex.toUpperCase()) return false
  const hash = Buffer.from(keccak256(Buffer.from(lower))).toString('hex')
  const isCapital = (at: number): boolean => Number.parseInt(hash[at] as string, 16) >= 8
  return lower.split('').some((letter, at) => (isCapital(at) ? letter.toUpperCase() : letter) !== hex[at])
}
