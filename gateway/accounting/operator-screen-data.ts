/** The data of each screen of the operator console. The page and the JSON answer use the same data. */
import type { Issue } from '../validation/issue.ts'
import type { Network } from '../config/networks.ts'
import type { Edition } from '../products/edition.ts'
import type { Journal, PaymentRecord } from '../payments/journal/journal.ts'
import type { PriceHistory } from '../payments/price-history.ts'
import type { Catalog, Plan } from '../plugin/catalog.ts'
import type { Alarm } from './alarms.ts'
import type { Funnel, FunnelRow } from './funnel.ts'
import { searchPayments } from './payment-search.ts'
import { totalToJson } from './ledger-export.ts'
import { isOver, type Ledger, type Month, monthAt, monthBefore, monthOf } from './ledger.ts'
import type { Metrics } from './metrics.ts'
import { rowToJson } from './reconciliation/findings.ts'
import type { Reconciliation } from './reconciliation/reconciliation.ts'
import type { PauseCheck } from '../products/paused-sales.ts'
import { DAY_MS, dayOf, dayText, histogram, quantile, revenueOf } from './revenue.ts'

export interface ScreenDataParts {
  readonly journal: Pick<Journal, 'dailySums' | 'topBuyers' | 'counts' | 'debts' | 'reversals' | 'list' | 'events'>
  readonly ledger: Ledger
  readonly funnel: Funnel
  readonly metrics: Pick<Metrics, 'latencies' | 'durations'>
  readonly prices: Pick<PriceHistory, 'history'>
  /** The plans that were bought, newest first, with the window in which each token is valid. */
  readonly purchases: (catalog: Catalog, limit: number) => Promise<readonly Purchase[]>
  /** Ids of revoked access tokens. */
  readonly revoked: ReadonlySet<string>
  readonly issues: () => readonly Issue[]
  readonly alarms: () => readonly Alarm[]
  /** What the operator has paused. */
  readonly paused: PauseCheck
  /** Null if there is no node to read the chain from. */
  readonly reconciliation: Reconciliation | null
  readonly settlerHealth: () => { readonly ready: boolean; readonly reason?: string }
  /** The networks that payments are taken on, the leading one first. */
  readonly networks: readonly Network[]
  /** The operator's own wallets, whose payments are no revenue. */
  readonly own: readonly string[]
  readonly now: () => Date
}

/** A plan that was bought. */
export interface Purchase {
  /** Id of the access token. */
  readonly id: string
  readonly plan: Pick<Plan, 'plan'>
  readonly payer: string
  /** Atomic units. */
  readonly amount: bigint
  readonly issuedAt: Date
  readonly expiresAt: Date
}

const DAYS = 30
const MAX_SUBSCRIPTIONS = 500
const MAX_REVERSALS = 100
const MAX_ROWS = 100
const TOP_BUYERS = 3

/** Returns the month that a query names, by default the current one. Throws InvalidInput if it is malformed. */
export function requestedMonth(query: URLSearchParams, now: Date): Month {
  return monthOf(query.get('month') ?? monthAt(now))
}

/** Builds the data of each screen. All amounts are atomic units of USDC as decimal strings. */
export function createScreenData(parts: ScreenDataParts) {
  return {
    overview: (edition: Edition) => overview(parts, edition),
    ledger: (query: URLSearchParams) => ledgerOf(parts, query),
    payments: (query: URLSearchParams) => searchPayments(parts.journal, query.get('q') ?? ''),
    routes: (edition: Edition) => routes(parts, edition),
    products: (edition: Edition) => products(parts, edition),
    subscriptions: (edition: Edition) => subscriptions(parts, edition),
    reconciliation: () => lastReconciliation(parts),
    priceChanges: () => priceChanges(parts),
    catalogState: async (edition: Edition) => catalogState(parts, edition),
  }
}

export type ScreenData = ReturnType<typeof createScreenData>

/** The last 30 days of revenue, how calls ended, the alarms, and how long settlements took. */
async function overview(parts: ScreenDataParts, { catalog }: Edition) {
  const { journal, funnel, metrics, networks, own, now } = parts
  const last = dayOf(now())
  const first = last - DAYS + 1
  const [sums, counted, states, debts] = await Promise.all([
    journal.dailySums(first * DAY_MS, own),
    funnel.read(first),
    journal.counts(),
    journal.debts(),
  ])
  const revenue = revenueOf(sums, catalog, { first, last })
  const income = ({ name, payments, amount }: (typeof revenue)['total']) => ({
    name,
    payments,
    amount: String(amount),
  })
  const latencies = metrics.latencies()
  return {
    from: dayText(first),
    to: dayText(last),
    networks: networks.map(({ name }) => name),
    settler: parts.settlerHealth(),
    revenue: {
      total: income(revenue.total),
      own: income(revenue.own),
      owed: income(revenue.owed),
      reversed: income(revenue.reversed),
      by_product: revenue.byProduct.map(income),
      by_plan: revenue.byPlan.map(income),
      by_network: revenue.byNetwork.map(income),
      by_day: revenue.byDay.map(income),
    },
    funnel: funnelOf(counted),
    ledger: states,
    debts: debts.map(debtToJson),
    alarms: parts.alarms().map(({ name, message, about, since }) => ({
      name,
      message,
      about,
      since: since.toISOString(),
    })),
    settle_seconds: {
      count: latencies.length,
      p50: quantile(latencies, 0.5),
      p95: quantile(latencies, 0.95),
      p99: quantile(latencies, 0.99),
      histogram: histogram(latencies),
    },
  }
}

/** What became of the calls of every priced route in the last 30 days, how long they took, and who paid most. */
async function routes({ journal, funnel, metrics, paused, own, now }: ScreenDataParts, { catalog }: Edition) {
  const last = dayOf(now())
  const first = last - DAYS + 1
  const [sums, counted, buyers] = await Promise.all([
    journal.dailySums(first * DAY_MS, own),
    funnel.read(first),
    journal.topBuyers(first * DAY_MS, TOP_BUYERS),
  ])
  const priced = [...catalog.operations.values()].filter(({ price, retired }) => price !== null && !retired)
  const rows = priced.map((operation) => {
    const { id, route } = operation
    const isOf = (row: { readonly operation: string }): boolean => row.operation === id
    const { offered, refused, not_charged, pending, delivered, repeated, by_token, ...reasons } = funnelOf(
      counted.filter(isOf),
    )
    const settled = sums.filter((sum) => isOf(sum) && sum.state === 'settled' && !sum.isOwn)
    const durations = metrics.durations(id)
    const top = buyers.filter(isOf)
    return {
      operation: id,
      route,
      paused_by: paused.of(operation)?.name ?? null,
      calls: { offered, refused, not_charged, pending, delivered, repeated, by_token },
      refusals: [...reasons.refused_by_reason, ...reasons.not_charged_by_reason],
      revenue: String(settled.reduce((total, { amount }) => total + amount, 0n)),
      seconds: { count: durations.length, p50: quantile(durations, 0.5), p99: quantile(durations, 0.99) },
      buyers: top[0]?.buyers ?? 0,
      top_buyers: top.map(({ payer, payments, amount }) => ({ payer, payments, amount: String(amount) })),
    }
  })
  rows.sort((one, other) => Number(other.revenue) - Number(one.revenue) || other.calls.offered - one.calls.offered)
  return { from: dayText(first), to: dayText(last), routes: rows }
}

/** The status of every product, with the runs of its jobs. */
async function products({ settlerHealth, paused }: ScreenDataParts, edition: Edition) {
  const facts = await edition.facts()
  return {
    catalog_version: edition.catalog.version,
    settler: settlerHealth(),
    products: edition.status().map((status) => {
      const product = edition.catalog.products.find(({ id }) => id === status.product)
      const jobs = (facts[status.product]?.['jobs'] ?? {}) as Record<string, { runs: number; failures: number }>
      return {
        ...status,
        title: product?.title ?? status.product,
        operations: product?.operations.length ?? 0,
        priced: product?.operations.filter(({ price }) => price !== null).length ?? 0,
        routes: (product?.operations ?? []).flatMap((operation) =>
          operation.internal || operation.retired
            ? []
            : [{ operation: operation.id, route: operation.route, paused_by: paused.of(operation)?.name ?? null }],
        ),
        jobs: Object.entries(jobs).map(([name, { runs, failures }]) => ({ name, runs, failures })),
      }
    }),
  }
}

/** The totals of a month, every debt that is open today or unclear, and the latest payments that are owed to us. */
async function ledgerOf({ journal, ledger, now }: ScreenDataParts, query: URLSearchParams) {
  const month = requestedMonth(query, now())
  const isLast = month.name >= monthAt(now())
  return {
    month: month.name,
    is_over: isOver(month, now()),
    previous: monthBefore(month.name),
    next: isLast ? null : monthAt(new Date(month.before)),
    totals: (await ledger.totals(month)).map(totalToJson),
    debts: (await ledger.debts()).map(debtToJson),
    unclear: (await ledger.unclear()).map(debtToJson),
    reversals: (await journal.reversals(0, MAX_REVERSALS)).map(debtToJson),
  }
}

/** Purchased plans, newest first. `id` identifies the access token; the token itself is never shown. */
async function subscriptions({ purchases, revoked, now }: ScreenDataParts, { catalog }: Edition) {
  const all = await purchases(catalog, MAX_SUBSCRIPTIONS)
  return {
    subscriptions: all.map(({ id, plan, payer, amount, issuedAt, expiresAt }) => ({
      id,
      plan: plan.plan,
      payer,
      amount: String(amount),
      bought_at: issuedAt.toISOString(),
      ends_at: expiresAt.toISOString(),
      state: revoked.has(id) ? 'revoked' : expiresAt > now() ? 'active' : 'ended',
    })),
  }
}

/** The last comparison with the chain, and the rows that need attention. */
async function lastReconciliation({ reconciliation }: ScreenDataParts) {
  if (!reconciliation) return { available: false, comparison: null, rows: [] }
  const last = reconciliation.last()
  const comparison = last && {
    at: last.at.toISOString(),
    read_to: last.readTo,
    unreadable: last.unreadable,
    buckets: last.buckets,
  }
  const rows = await reconciliation.rows(MAX_ROWS)
  return { available: true, comparison, rows: rows.map(rowToJson) }
}

/** The latest price changes, newest first. */
async function priceChanges({ prices }: ScreenDataParts) {
  const history = await prices.history({ limit: MAX_ROWS })
  return {
    changes: history.map(({ operation, route, before, after, at, version }) => ({
      operation,
      route,
      before: before === null ? null : String(before),
      after: after === null ? null : String(after),
      at: at.toISOString(),
      version,
    })),
  }
}

/** The catalog that is served, and what is wrong with its files. */
function catalogState({ issues }: ScreenDataParts, { catalog, disabled }: Edition) {
  const sizes = { products: catalog.products.length, operations: catalog.operations.size }
  return { version: catalog.version, ...sizes, withheld: disabled, mistakes: issues(), check: null }
}

/** A debt as JSON: a payment that was settled and cannot be delivered. */
function debtToJson(record: PaymentRecord) {
  const { key, amount, payer, network, transaction, operation, route, reason, updatedAt } = record
  return {
    payment: key,
    network,
    operation,
    route,
    payer,
    amount: String(amount),
    transaction,
    reason,
    since: new Date(updatedAt).toISOString(),
  }
}

/** Counts of each step, and the reasons why calls stopped there, the most frequent first. */
function funnelOf(rows: readonly FunnelRow[]) {
  const total = (kind: FunnelRow['kind']): number =>
    rows.filter((row) => row.kind === kind).reduce((sum, { count }) => sum + count, 0)
  const reasons = (kind: FunnelRow['kind']) => {
    const byReason = new Map<string, number>()
    for (const { kind: own, reason, count } of rows)
      if (own === kind) byReason.set(reason, (byReason.get(reason) ?? 0) + count)
    return [...byReason].map(([reason, count]) => ({ reason, count })).sort((one, other) => other.count - one.count)
  }
  return {
    offered: total('offered'),
    refused: total('refused'),
    not_charged: total('not_charged'),
    pending: total('pending'),
    delivered: total('delivered'),
    repeated: total('repeated'),
    by_token: total('by_token'),
    refused_by_reason: reasons('refused'),
    not_charged_by_reason: reasons('not_charged'),
    pending_by_reason: reasons('pending'),
  }
}
