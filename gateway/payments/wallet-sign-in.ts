/**
 * Whether a wallet has signed in for this call. A key signs by itself (EIP-191), a contract wallet by its code (ERC-1271).
 * Each message counts once, on all processes that share a database.
 */
import { hashMessage, recoverAddress } from 'viem/utils'
import type { Hex } from '../config/networks.ts'
import { Unavailable } from '../errors.ts'
import type { Erc1271Check } from '../methods/exact-evm/erc1271.ts'
import type { NonceStore } from '../stores/nonce-store.ts'
import { createSharedLimit, type SharedLimit, type SharedLimitOptions } from '../stores/shared-limit.ts'
import {
  isRefusal,
  MAX_AGE_SECONDS,
  type PresentedSignIn,
  readSignIn,
  refusal,
  type SignIn,
  type SignInParts,
  type SignInRefusal,
  signInText,
} from '../x402/sign-in-with-x.ts'
import type { NodeCallBudget } from './node-call-budget.ts'

/** The checks of messages that wallets sign. */
export interface MessageChecks {
  /** Remembers what was used: each message counts once. */
  readonly nonces: NonceStore
  /** Checks the signatures of contract wallets. */
  readonly accepts: Erc1271Check
  /** Counts the calls of nodes. */
  readonly nodeCalls: NodeCallBudget
  /** Limits the messages of one caller that fail. */
  readonly failures: SharedLimit
}

interface WalletSignInParts extends SignInParts, MessageChecks {
  /** The networks that payments are taken on, CAIP-2. A message must name one of them. */
  readonly chains: readonly string[]
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
 * @param callerPlace what limits count as one caller; null on this machine, which is not limited
 * @throws Unavailable if the chain has to be asked and cannot be read
 * @throws RateLimited after too many sign-ins of this caller that failed, or signatures that the chain has to check
 */
export type WalletSignIn = (
  presented: PresentedSignIn,
  wallet: PayingWallet,
  callerPlace: string | null,
) => Promise<SignInRefusal | null>

const FAILURES = 60

/** Creates the limit of messages of one caller that fail: it takes a millisecond to check a signature. */
export function createSignInLimit(peers: SharedLimitOptions['peers']): SharedLimit {
  const message = `More than ${FAILURES} sign-ins from this address failed within a minute.`
  return createSharedLimit({ name: 'sign-in', points: FAILURES, seconds: 60, message, peers: peers ?? null })
}

/** Creates the check. */
export function createWalletSignIn(parts: WalletSignInParts): WalletSignIn {
  const { chains, failures } = parts
  return async (presented, wallet, callerPlace) => {
    const signIn = readSignIn(parts, presented)
    if (isRefusal(signIn)) return signIn
    if (!chains.includes(signIn.chainId)) return otherChain(chains)
    if (signIn.address.toLowerCase() !== wallet.payer.toLowerCase()) return OTHER_WALLET
    const counted = callerPlace === null ? null : await failures.count(callerPlace)
    const refused = await checkSigned(parts, signIn, wallet, callerPlace)
    if (!refused) await counted?.takeBack()
    return refused
  }
}

/** Checks that a wallet signed a message that was written for us, and marks it as used. */
async function checkSigned(
  { accepts, nonces, nodeCalls }: WalletSignInParts,
  signIn: SignIn,
  { payer, network }: PayingWallet,
  callerPlace: string | null,
): Promise<SignInRefusal | null> {
  const wallet = payer.toLowerCase()
  const hash = hashMessage(signInText(signIn))
  const signature = signIn.signature as Hex
  const signer = await recoverAddress({ hash, signature }).catch(() => null)
  if (signer?.toLowerCase() !== wallet) {
    if (network === null) return WRONG_SIGNATURE
    const account = nodeCalls.account(wallet, callerPlace)
    await account.countCodeCheck(false)
    await account.spend(1, false)
    // The chain of the purchase decides, whichever of ours the message names: clients sign for the first that we offer.
    const isAccepted = await accepts({ caip2: network }, payer, hash, signature).catch(() => {
      throw new Unavailable('The chain cannot check the sign-in of this wallet now; sign in again.', 10)
    })
    if (!isAccepted) return WRONG_SIGNATURE
  }
  // Clocks of processes and clients differ, so the nonce is remembered for longer than it is valid.
  const until = new Date(Date.parse(signIn.issuedAt) + 2 * MAX_AGE_SECONDS * 1000)
  return (await nonces.use(`sign-in ${wallet} ${signIn.nonce}`, until)) ? null : USED
}

const OTHER_WALLET = refusal('invalid_siwx_address', 'is of another wallet')
const WRONG_SIGNATURE = refusal('invalid_siwx_signature', 'has a signature that is not of this wallet')
const USED = refusal('invalid_siwx_nonce', 'was used before; each is good for one call')

const otherChain = (chains: readonly string[]): SignInRefusal =>
  refusal('invalid_siwx_unsupported_chain', `was signed for another chain than ${chains.join(' or ')}`)
