/** EIP-3009 on the token's side: call data, event topics and revert texts. Works for FiatTokenV2_2 (USDC). */
import type { Payment } from '../payment-method.ts'
import type { Refusal } from '../../x402/payment-requirements.ts'
import type { Hex } from '../../config/networks.ts'

/** The message that the payer signs (EIP-3009, TransferWithAuthorization). */
export interface Authorization {
  readonly from: Hex
  readonly to: Hex
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
}

/** A signed authorization: all that the token needs to move the money. */
export interface Transfer extends Authorization {
  readonly signature: Hex
}

/** First topics of the token's events: keccak-256 of their signatures. */
export const TOPICS = {
  /** AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce) */
  used: '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5',
  /** AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce) */
  canceled: '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81',
  /** Transfer(address indexed from, address indexed to, uint256 value) */
  transfer: '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
} as const

const SELECTORS = {
  /** transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32) */
  transferSplit: '0xe3ee160e',
  /** transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes) */
  transferBytes: '0xcf092995',
  /** balanceOf(address) */
  balanceOf: '0x70a08231',
  /** authorizationState(address,bytes32) */
  authorizationState: '0xe94a0102',
} as const

/** Converts a payment to EIP-3009 fields: its identity is the nonce, its proof the signature. */
export function transferOf(payment: Payment): Transfer {
  const { payer, payTo, amount, startsAt, expiresAt, identity, proof } = payment
  return {
    from: payer,
    to: payTo,
    value: amount,
    validAfter: startsAt,
    validBefore: expiresAt,
    nonce: identity as Hex,
    signature: proof as Hex,
  }
}

/** Encodes an ABI word: left-padded to 32 bytes, in hex without 0x. */
export function word(value: Hex | bigint | number): string {
  return (typeof value === 'string' ? value.slice(2).toLowerCase() : value.toString(16)).padStart(64, '0')
}

/** Call data that settles a payment: the r, s, v form for a key's 65 bytes, the bytes form for a contract wallet. */
export function settleData(transfer: Transfer): Hex {
  const { from, to, value, validAfter, validBefore, nonce, signature } = transfer
  const head = [from, to, value, validAfter, validBefore, nonce].map(word).join('')
  const bytes = signature.slice(2)
  if (isKeySignature(signature)) {
    const [r, s, v] = [bytes.slice(0, 64), bytes.slice(64, 128), bytes.slice(128)]
    return `${SELECTORS.transferSplit}${head}${v.padStart(64, '0')}${r}${s}`
  }
  const tail = bytes.padEnd(Math.ceil(bytes.length / 64) * 64, '0')
  return `${SELECTORS.transferBytes}${head}${word(7 * 32)}${word(bytes.length / 2)}${tail}`
}

/** The head of a settlement's call data, from its selector: six words, of which the second is the recipient. */
const SETTLEMENT = new RegExp(
  `^(?:${SELECTORS.transferSplit}|${SELECTORS.transferBytes})0{24}[0-9a-f]{40}0{24}([0-9a-f]{40})[0-9a-f]{256}([0-9a-f]*)$`,
)

/** Returns whom a settlement pays; null if the data are anything but what `settleData` makes. */
export function recipientOfSettlement(data: Hex): Hex | null {
  const [, recipient, tail = ''] = SETTLEMENT.exec(data.toLowerCase()) ?? []
  if (recipient === undefined) return null
  if (data.startsWith(SELECTORS.transferSplit)) return tail.length === 3 * 64 ? `0x${recipient}` : null
  if (tail.length < 2 * 64 || tail.slice(0, 64) !== word(7 * 32)) return null
  const bytes = Number(`0x${tail.slice(64, 128)}`)
  const signature = tail.slice(128)
  const isExact = signature.length === Math.ceil(bytes / 32) * 64 && /^0*$/.test(signature.slice(bytes * 2))
  return isExact ? `0x${recipient}` : null
}

/** Returns true for a signature of 65 bytes, which a private key makes. Contract wallets use other lengths. */
export function isKeySignature(signature: Hex): boolean {
  return signature.length === 2 + 2 * 65
}

/** Call data of balanceOf(account). */
export function balanceData(account: Hex): Hex {
  return `${SELECTORS.balanceOf}${word(account)}`
}

/** Call data of authorizationState(authorizer, nonce): true once used or cancelled. */
export function stateData(authorizer: Hex, nonce: Hex): Hex {
  return `${SELECTORS.authorizationState}${word(authorizer)}${word(nonce)}`
}

/** Revert texts of the token (FiatTokenV2_2 and OpenZeppelin), each with the refusal that the payer gets. */
const REVERTS: readonly (readonly [RegExp, Refusal])[] = [
  [
    /exceeds balance/i,
    { reason: 'insufficient_funds', message: 'The payer holds less USDC than the payment moves. Add USDC.' },
  ],
  [
    /used or cancell?ed/i,
    { reason: 'invalid_transaction_state', message: 'This authorization is used or cancelled on the chain.' },
  ],
  [
    /expired/i,
    {
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
      message: 'The authorization has expired on the chain.',
    },
  ],
  [
    /not yet valid/i,
    {
      reason: 'invalid_exact_evm_payload_authorization_valid_after',
      message: 'The authorization is not valid yet on the chain.',
    },
  ],
  [
    /signature|ecrecover/i,
    {
      reason: 'invalid_exact_evm_payload_signature',
      message: "The token does not accept the signature as the payer's.",
    },
  ],
  [/blacklisted/i, { reason: 'invalid_transaction_state', message: 'The token refuses transfers of this account.' }],
  [/paused/i, { reason: 'invalid_transaction_state', message: 'The token is paused.' }],
]

/** Returns the refusal that a revert text stands for. */
export function refusalOf(revert: string): Refusal {
  const named = REVERTS.find(([pattern]) => pattern.test(revert))
  return named?.[1] ?? { reason: 'invalid_transaction_state', message: 'The token refused the transfer.' }
}

/**
 * The text of Error(string) in returned bytes, or null.
 * @example revertText('0x08c379a0' + word(32) + word(2) + '6e6f'.padEnd(64, '0')) → 'no'
 */
export function revertText(data: unknown): string | null {
  if (typeof data !== 'string' || !data.startsWith('0x08c379a0')) return null
  const bytes = Buffer.from(data.slice(10), 'hex')
  if (bytes.length < 64) return null
  return bytes.subarray(64, 64 + Number(bytes.readBigUInt64BE(56))).toString('utf8')
}
