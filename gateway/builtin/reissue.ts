/**
 * A lost access token, given again to the wallet that paid for it: same id, same end. The wallet signs a sentence with
 * the present time (EIP-191); the ledger says what it has bought.
 */
import { recoverMessageAddress } from 'viem'
import type { Catalog, Plan } from '../catalog/catalog.ts'
import type { Hex, Journal, PaymentRecord } from '../payments/payment.ts'
import { InvalidInput, Unavailable } from '../plugin.ts'
import type { Tokens } from '../tokens.ts'

export interface ReissueParts {
  readonly journal: Pick<Journal, 'list' | 'events'>
  readonly tokens: Pick<Tokens, 'issue'>
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Ids of tokens taken back. */
  readonly revoked: ReadonlySet<string>
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
const MOST = 1000

/** The sentence to sign, with personal_sign (EIP-191). */
export function reissueMessage(baseUrl: string, address: string, issuedAt: string): string {
  return `Give me my access tokens for ${baseUrl} again.\n\nWallet: ${address}\nIssued At: ${issuedAt}`
}

export function createReissue({ journal, tokens, baseUrl, revoked, now }: ReissueParts): Reissue {
  /** When the purchase was called: the same second that its token was counted from. */
  async function boughtAt({ key, attempt, createdAt }: PaymentRecord): Promise<Date> {
    const events = await journal.events(key)
    const reserved = events.find((event) => event.state === 'reserved' && event.attempt === attempt)
    return new Date(reserved?.at ?? createdAt)
  }

  return async (catalog, { address, issued_at: issuedAt, signature }) => {
    const wrong = (field: string, msg: string): InvalidInput => new InvalidInput(msg, ['body', field])
    const age = now().getTime() - Date.parse(issuedAt)
    if (!(Math.abs(age) <= FRESH_MS)) throw wrong('issued_at', 'must be within ten minutes of now; sign afresh')
    const message = reissueMessage(baseUrl, address, issuedAt)
    const signer = await recoverMessageAddress({ message, signature: signature as Hex }).catch(() => null)
    if (signer?.toLowerCase() !== address.toLowerCase())
      throw wrong('signature', 'is not one of the address over the sentence this route asks for')

    const plans = new Map(
      [...catalog.operations.values()].flatMap(({ id, plan }) => (plan ? [[id, plan] as const] : [])),
    )
    const operations = [...plans.keys()]
    const records = await journal.list({ states: ['settled'], operations, payer: address, limit: MOST }).catch(() => {
      throw new Unavailable('The ledger cannot be read at the moment; ask again.')
    })
    const again = await Promise.all(
      records.map(async (record) => {
        const plan = plans.get(record.operation) as Plan
        const { durationSeconds } = storedDuration(record) ?? plan
        const grant = { subject: record.payer, plan: plan.plan, tier: plan.tier, durationSeconds, id: record.callId }
        return { plan, ...(await tokens.issue({ ...grant, issuedAt: await boughtAt(record) })) }
      }),
    )
    const kept = again.filter(({ expiresAt }, at) => expiresAt > now() && !revoked.has(records[at]!.callId))
    return kept.toSorted((a, b) => b.expiresAt.getTime() - a.expiresAt.getTime())
  }
}

/** The window as it was sold, as long as the answer is kept: a plan may have changed since. */
function storedDuration({ answer }: PaymentRecord): { readonly durationSeconds: number } | null {
  if (!answer) return null
  const { duration_seconds: seconds } = JSON.parse(answer.body.toString('utf8')) as { duration_seconds?: unknown }
  return typeof seconds === 'number' ? { durationSeconds: seconds } : null
}
