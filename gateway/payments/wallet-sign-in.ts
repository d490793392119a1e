/**
 * Whether a wallet has signed in for this call. A key signs by itself (EIP-191), a contract wallet by its code (ERC-1271).
 * Each message counts once, on all processes that share a database.
 */
import { hashMessage, recoverAddress } from 'viem/utils'
import type { Hex } from '../config/networks.ts'
import { Unavailable } from '../errors.ts'
import type { Erc1271Check } from '../methods/exact-evm/erc1271.ts'
import { createSignatureCheckLimit } from '../methods/signature-check-limit.ts'
import type { NonceStore } from '../stores/nonce-store.ts'
import {
  isRefusal,
  MAX_AGE_SECONDS,
  type PresentedSignIn,
  readSignIn,
  refusal,
  type SignInParts,
  type SignInRefusal,
  signInText,
} from '../x402/sign-in-with-x.ts'

export interface WalletSignInParts extends SignInParts {
  /** Remembers the nonces that were used. */
  readonly nonces: NonceStore
  /** Checks the signatures of contract wallets. */
  readonly accepts: Erc1271Check
}

export interface PayingWallet {
  readonly payer: Hex
  /**
   * Where it paid, CAIP-2. The same address may be another contract elsewhere. Null if it has not paid: then no chain is
   * asked about it.
   */
  readonly network: string | null
}

/**
 * Checks that the wallet has signed this message, and marks the message as used. Returns null if the sign-in is valid,
 * otherwise why it is not.
 * @throws Unavailable if the chain has to be asked and cannot be read
 * @throws RateLimited after too many signatures that the chain has to check
 */
export type WalletSignIn = (presented: PresentedSignIn, wallet: PayingWallet) => Promise<SignInRefusal | null>

/** Creates the check. Checks of contract wallets share one limit. */
export function createWalletSignIn(parts: WalletSignInParts): WalletSignIn {
  const limitSignatureChecks = createSignatureCheckLimit()
  return async (presented, { payer, network }) => {
    const signIn = readSignIn(parts, presented)
    if (isRefusal(signIn)) return signIn
    const wallet = payer.toLowerCase()
    if (signIn.address.toLowerCase() !== wallet) return OTHER_WALLET
    const hash = hashMessage(signInText(signIn))
    const signature = signIn.signature as Hex
    const signer = await recoverAddress({ hash, signature }).catch(() => null)
    if (signer?.toLowerCase() !== wallet) {
      if (network === null) return WRONG_SIGNATURE
      await limitSignatureChecks(wallet)
      const isAccepted = await parts.accepts({ caip2: network }, payer, hash, signature).catch(() => {
        throw new Unavailable('The chain cannot check the sign-in of this wallet now; sign in again.', 10)
      })
      if (!isAccepted) return WRONG_SIGNATURE
    }
    // Clocks of processes and clients differ, so the nonce is remembered for longer than it is valid.
    const until = new Date(Date.parse(signIn.issuedAt) + 2 * MAX_AGE_SECONDS * 1000)
    return (await parts.nonces.use(`sign-in ${wallet} ${signIn.nonce}`, until)) ? null : USED
  }
}

const OTHER_WALLET = refusal('invalid_siwx_address', 'is of another wallet')
const WRONG_SIGNATURE = refusal('invalid_siwx_signature', 'has a signature that is not of this wallet')
const USED = refusal('invalid_siwx_nonce', 'was used before; each is good for one call')
