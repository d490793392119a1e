/** Bought plans as the ledger knows them: a purchase is the settled payment of a plan's operation, and nothing else. */
import type { Catalog, Plan } from '../../plugin/catalog.ts'
import type { Journal, PaymentRecord } from '../../payments/journal/journal.ts'
import type { Hex } from '../../config/networks.ts'

export interface BoughtPlan {
  /** Id of its token. */
  readonly id: string
  readonly plan: Plan
  readonly payer: Hex
  /** Where it was paid, CAIP-2. */
  readonly network: string
  /** In atomic units. */
  readonly amount: bigint
  /** From when its window counts; tokens count in whole seconds. */
  readonly issuedAt: Date
  readonly expiresAt: Date
  /** The window as it was sold. */
  readonly durationSeconds: number
}

const MOST = 1000

/** The plans that were bought, by everybody or by one wallet, newest first. */
export async function boughtPlans(
  journal: Pick<Journal, 'list' | 'events'>,
  catalog: Catalog,
  { payer, most = MOST }: { readonly payer?: string; readonly most?: number } = {},
): Promise<readonly BoughtPlan[]> {
  const plans = new Map([...catalog.operations.values()].flatMap(({ id, plan }) => (plan ? [[id, plan] as const] : [])))
  if (plans.size === 0) return []
  const whose = payer === undefined ? {} : { payer }
  const records = await journal.list({ states: ['settled'], operations: [...plans.keys()], ...whose, limit: most })
  return Promise.all(
    records.map(async (record) => {
      const plan = plans.get(record.operation) as Plan
      const durationSeconds = storedDuration(record) ?? plan.durationSeconds
      const issuedAt = await boughtAt(journal, record)
      const expiresAt = new Date(issuedAt.getTime() + durationSeconds * 1000)
      const { callId: id, payer: by, network, amount } = record
      return { id, plan, payer: by, network, amount, issuedAt, expiresAt, durationSeconds }
    }),
  )
}

/** When the purchase was called, in the second that its token was counted from. */
async function boughtAt(journal: Pick<Journal, 'events'>, { key, attempt, createdAt }: PaymentRecord): Promise<Date> {
  let at = createdAt
  // A payment that was given back and used again counts from its last use.
  if (attempt > 1) {
    const events = await journal.events(key)
    at = events.find((event) => event.state === 'reserved' && event.attempt === attempt)?.at ?? createdAt
  }
  return new Date(Math.floor(at / 1000) * 1000)
}

/** The window as it was sold, as long as the answer is kept: a plan may have changed since. */
function storedDuration({ answer }: PaymentRecord): number | null {
  if (!answer) return null
  const { duration_seconds: seconds } = JSON.parse(answer.body.toString('utf8')) as { duration_seconds?: unknown }
  return typeof seconds === 'number' ? seconds : null
}
