/**
 * A lost access token, given again to the wallet that paid for it: same id, same end. The wallet signs a sentence with
 * the present time (EIP-191), a key by itself and a contract by its code (ERC-1271); the ledger says what it has bought.
 */
import { hashMessage, recoverAddress } from 'viem'
import type { Catalog, Plan } from '../../plugin/catalog.ts'
import type { Journal } from '../../payments/journal/journal.ts'
import type { Hex } from '../../config/networks.ts'
import type { Accepts } from '../../methods/exact-evm/erc1271.ts'
import { createUnproven } from '../../methods/exact-evm/unverified-limit.ts'
import { InvalidInput, Unavailable } from '../../plugin/plugin.ts'
import type { NonceStore } from '../../stores/nonce-store.ts'
import type { Tokens } from '../../tokens/access-tokens.ts'
import { type BoughtPlan, boughtPlans } from './purchases.ts'

export interface ReissueParts {
  readonly journal: Pick<Journal, 'list' | 'events'>
  readonly tokens: Pick<Tokens, 'issue'>
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Ids of tokens taken back. */
  readonly revoked: ReadonlySet<string>
  /** Remembers used signatures: each is accepted once. */
  readonly nonces: NonceStore
  /** Judges contract wallets. */
  readonly accepts: Accepts
  readonly now: () => Date
}

/** What the wallet's holder sends. */
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

export type Reissue = (catalog: Catalog, body: ReissueBody) => Promise<readonly Reissued[]>

/** A signature older than this, or from further ahead, is refused: it may have been overheard. */
const FRESH_MS = 10 * 60_000

/** The sentence to sign, with personal_sign (EIP-191). */
export function reissueMessage(baseUrl: string, address: string, issuedAt: string): string {
  return `Give me my access tokens for ${baseUrl} again.\n\nWallet: ${address}\nIssued At: ${issuedAt}`
}

export function createReissue({ journal, tokens, baseUrl, revoked, nonces, accepts, now }: ReissueParts): Reissue {
  const admitLook = createUnproven()

  /**
   * What was bought on those networks where the wallet's code accepts the signature: one address may be another's on
   * another chain. The account is somebody's claim at this point.
   */
  async function acceptedOf(bought: readonly BoughtPlan[], wallet: Hex, digest: Hex, signature: Hex) {
    const networks = [...new Set(bought.map(({ network }) => network))]
    const accepted = new Set<string>()
    for (const caip2 of networks) {
      await admitLook(wallet)
      const isAccepted = await accepts({ caip2 }, wallet, digest, signature).catch(() => {
        throw new Unavailable('The chain, which judges the signature of this wallet, cannot be asked; ask again.', 10)
      })
      if (isAccepted) accepted.add(caip2)
    }
    return bought.filter(({ network }) => accepted.has(network))
  }

  return async (catalog, { address, issued_at: issuedAt, signature }) => {
    const wrong = (field: string, msg: string): InvalidInput => new InvalidInput(msg, ['body', field])
    const signedAt = Date.parse(issuedAt)
    if (!(Math.abs(now().getTime() - signedAt) <= FRESH_MS))
      throw wrong('issued_at', 'must be within ten minutes of now; sign afresh')
    const wallet = address.toLowerCase() as Hex
    const digest = hashMessage(reissueMessage(baseUrl, address, issuedAt))
    const signer = await recoverAddress({ hash: digest, signature: signature as Hex }).catch(() => null)
    const bought = await boughtPlans(journal, catalog, { payer: wallet }).catch(() => {
      throw new Unavailable('The ledger cannot be read at the moment; ask again.', 10)
    })
    // A key is the same on every chain. Only a wallet that has bought is worth a look at one.
    const isKeys = signer?.toLowerCase() === wallet
    const owned = isKeys ? bought : await acceptedOf(bought, wallet, digest, signature as Hex)
    if (!isKeys && owned.length === 0)
      throw wrong('signature', 'is not one of the address over the sentence this route asks for')

    const running = owned.filter(({ id, expiresAt }) => expiresAt > now() && !revoked.has(id))
    if (running.length === 0) return []
    // Whoever overhears the request must not get the tokens too. Kept longer than fresh: clocks of processes differ.
    if (!(await nonces.use(`reissue ${digest}`, new Date(signedAt + 2 * FRESH_MS))))
      throw wrong('signature', 'was used before; sign afresh, with the present time')
    const again = await Promise.all(
      running.map(async ({ id, plan, payer, issuedAt: from, durationSeconds }) => {
        const grant = { subject: payer, plan: plan.plan, tier: plan.tier, durationSeconds, id, issuedAt: from }
        return { plan, ...(await tokens.issue(grant)) }
      }),
    )
    return again.toSorted((a, b) => b.expiresAt.getTime() - a.expiresAt.getTime())
  }
}
