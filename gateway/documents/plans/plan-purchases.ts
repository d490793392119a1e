/** Plan purchases, read from the journal: a purchase is a settled payment of the operation that sells a plan. */
import type { Catalog, Plan } from '../../plugin/catalog.ts'
import type { Journal, PaymentRecord } from '../../payments/journal/journal.ts'
import type { Hex } from '../../config/networks.ts'

export interface PlanPurchase {
  /** Id of the access token. */
  readonly id: string
  readonly plan: Plan
  readonly payer: Hex
  /** The network of the payment, CAIP-2. */
  readonly network: string
  /** Atomic units. */
  readonly amount: bigint
  /** Start of the token's window, in whole seconds. */
  readonly issuedAt: Date
  readonly expiresAt: Date
  /** The length of the window when it was sold. */
  readonly durationSeconds: number
}

const MAX_PURCHASES = 1000

/** The plan purchases of everybody, or of one wallet, newest first. At most `limit`. */
export async function planPurchases(
  journal: Pick<Journal, 'list' | 'events'>,
  catalog: Catalog,
  { payer, limit = MAX_PURCHASES }: { readonly payer?: string; readonly limit?: number } = {},
): Promise<readonly PlanPurchase[]> {
  const plans = new Map([...catalog.operations.values()].flatMap(({ id, plan }) => (plan ? [[id, plan] as const] : [])))
  if (plans.size === 0) return []
  const ofPayer = payer === undefined ? {} : { payer }
  const records = await journal.list({ states: ['settled'], operations: [...plans.keys()], ...ofPayer, limit })
  return Promise.all(
    records.map(async (record) => {
      const plan = plans.get(record.operation) as Plan
      const durationSeconds = storedDuration(record) ?? plan.durationSeconds
      const issuedAt = await purchasedAt(journal, record)
      const expiresAt = new Date(issuedAt.getTime() + durationSeconds * 1000)
      const { callId: id, payer: by, network, amount } = record
      return { id, plan, payer: by, network, amount, issuedAt, expiresAt, durationSeconds }
    }),
  )
}

/** The second in which the purchase was called: the token's window starts there. */
async function purchasedAt(
  journal: Pick<Journal, 'events'>,
  { key, attempt, callId, createdAt }: PaymentRecord,
): Promise<Date> {
  let at = createdAt
  // A payment that was released and used again counts from its last call. One whose answer was kept for a caller who left is
  // reserved twice for one call, which made the token the first time. Each reservation names its call.
  if (attempt > 1) {
    const events = await journal.events(key)
    at = events.find(({ state, note }) => state === 'reserved' && note === callId)?.at ?? createdAt
  }
  return new Date(Math.floor(at / 1000) * 1000)
}

/** The length of the window in the stored answer, while it is kept: the plan may have changed since. */
function storedDuration({ answer }: PaymentRecord): number | null {
  if (!answer) return null
  const { duration_seconds: seconds } = JSON.parse(answer.body.toString()) as { duration_seconds?: unknown }
  return typeof seconds === 'number' ? seconds : null
}
