/**
 * Reissues lost access tokens to the wallet that paid for them, with the same id and the same end. The wallet signs a
 * message with the current time: a key by itself (EIP-191), a contract wallet by its code (ERC-1271). The journal knows
 * what the wallet has bought.
 */
import { hashMessage, recoverAddress } from 'viem/utils'
import type { Hex } from '../../config/networks.ts'
import type { Erc1271Check } from '../../methods/exact-evm/erc1271.ts'
import type { Journal } from '../../payments/journal/journal.ts'
import type { NodeCallAccount } from '../../payments/payment.ts'
import type { MessageChecks } from '../../payments/wallet-sign-in.ts'
import type { Catalog, Plan } from '../../plugin/catalog.ts'
import { InvalidInput, Unavailable } from '../../plugin/plugin.ts'
import type { Tokens } from '../../tokens/access-tokens.ts'
import { type PlanPurchase, planPurchases } from './plan-purchases.ts'

export interface ReissueParts extends MessageChecks {
  readonly journal: Pick<Journal, 'list' | 'events'>
  readonly tokens: Pick<Tokens, 'issue'>
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Ids of revoked tokens. */
  readonly revoked: ReadonlySet<string>
  readonly now: () => Date
}

/** The body of the request. */
export interface ReissueBody {
  readonly address: string
  readonly issued_at: string
  readonly signature: string
}

export interface Reissued {
  readonly plan: Plan
  readonly token: string
  readonly issuedAt: Date
  readonly expiresAt: Date
}

/**
 * Returns every valid token of the wallet, the longest first. Throws InvalidInput if the signature is old, used or not
 * the wallet's, RateLimited after too many of those, and Unavailable if the journal or the chain cannot be read.
 * @param callerPlace what limits count as one caller; null on this machine, which is not limited
 */
export type Reissue = (catalog: Catalog, body: ReissueBody, callerPlace: string | null) => Promise<readonly Reissued[]>

/** How far the time in the message may be from now. It limits how long an intercepted signature is of use. */
const MAX_AGE_MS = 10 * 60_000

/** The message to sign with personal_sign (EIP-191). */
export function reissueMessage(baseUrl: string, address: string, issuedAt: string): string {
  return `Give me my access tokens for ${baseUrl} again.\n\nWallet: ${address}\nIssued At: ${issuedAt}`
}

/** Creates the function that reissues tokens. */
export function createReissue(parts: ReissueParts): Reissue {
  return async (catalog, body, callerPlace) => {
    const counted = callerPlace === null ? null : await parts.failures.count(callerPlace)
    const reissued = await reissue(parts, catalog, body, callerPlace)
    await counted?.takeBack()
    return reissued
  }
}

async function reissue(
  { journal, tokens, baseUrl, revoked, nonces, accepts, nodeCalls, now }: ReissueParts,
  catalog: Catalog,
  { address, issued_at: issuedAt, signature }: ReissueBody,
  callerPlace: string | null,
): Promise<readonly Reissued[]> {
  const signedAt = Date.parse(issuedAt)
  if (!(Math.abs(now().getTime() - signedAt) <= MAX_AGE_MS))
    throw invalid('issued_at', 'must be within ten minutes of now; sign a message with the current time')
  const wallet = address.toLowerCase() as Hex
  const digest = hashMessage(reissueMessage(baseUrl, address, issuedAt))
  const signer = await recoverAddress({ hash: digest, signature: signature as Hex }).catch(() => null)
  const bought = await planPurchases(journal, catalog, { payer: wallet }).catch(() => {
    throw new Unavailable('Purchases cannot be looked up at the moment; send the request again.', 10)
  })
  // A key is the same on every chain. The chain is only asked for a wallet that has bought something.
  const isKey = signer?.toLowerCase() === wallet
  const owned = isKey
    ? bought
    : await acceptedByContract(accepts, nodeCalls.account(wallet, callerPlace), bought, wallet, digest, signature)
  if (!isKey && owned.length === 0)
    throw invalid('signature', 'is not a signature of this address over the message that this route asks for')

  const valid = owned.filter(({ id, expiresAt }) => expiresAt > now() && !revoked.has(id))
  if (valid.length === 0) return []
  // An intercepted request must not return the tokens again. Clocks of processes differ, so the nonce is kept longer.
  if (!(await nonces.use(`reissue ${digest}`, new Date(signedAt + 2 * MAX_AGE_MS))))
    throw invalid('signature', 'was used before; sign a new message with the current time')
  const reissued = await Promise.all(
    valid.map(async ({ id, plan, payer, issuedAt: start, durationSeconds }) => {
      const grant = { subject: payer, plan: plan.plan, tier: plan.tier, durationSeconds, id, issuedAt: start }
      return { plan, ...(await tokens.issue(grant)) }
    }),
  )
  return reissued.toSorted((a, b) => b.expiresAt.getTime() - a.expiresAt.getTime())
}

/**
 * Purchases on the networks where the wallet's contract accepts the signature. The same address may belong to somebody
 * else on another chain. At this point anybody may claim the address, so chain reads are limited per wallet.
 */
async function acceptedByContract(
  accepts: Erc1271Check,
  account: NodeCallAccount,
  bought: readonly PlanPurchase[],
  wallet: Hex,
  digest: Hex,
  signature: string,
): Promise<readonly PlanPurchase[]> {
  const accepted = new Set<string>()
  for (const caip2 of new Set(bought.map(({ network }) => network))) {
    await account.countCodeCheck(false)
    await account.spend(1, false)
    const isAccepted = await accepts({ caip2 }, wallet, digest, signature as Hex).catch(() => {
      throw new Unavailable('The chain cannot check the signature of this wallet now; send the request again.', 10)
    })
    if (isAccepted) accepted.add(caip2)
  }
  return bought.filter(({ network }) => accepted.has(network))
}

function invalid(field: string, message: string): InvalidInput {
  return new InvalidInput(message, ['body', field])
}
