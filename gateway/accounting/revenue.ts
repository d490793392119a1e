/** Revenue by product, plan, network and day. Payments of the operator's own wallets are kept apart and never added. */
import type { Catalog } from '../plugin/catalog.ts'
import type { PaymentSum } from '../payments/journal/journal.ts'

export interface Income {
  readonly name: string
  readonly payments: number
  readonly amount: bigint
}

export interface Revenue {
  readonly total: Income
  /** Payments of the operator's own wallets; not included in any other figure. */
  readonly own: Income
  /** Payments that were settled but cannot be delivered. */
  readonly owed: Income
  /** Payments that a reorganisation has taken back after delivery: owed to us. */
  readonly reversed: Income
  readonly byProduct: readonly Income[]
  readonly byPlan: readonly Income[]
  /** By CAIP-2 id. */
  readonly byNetwork: readonly Income[]
  /** Every day of the period by ISO date, oldest first. */
  readonly byDay: readonly Income[]
}

export const DAY_MS = 86_400_000

/** Upper bounds of the histogram of settlement times, in seconds. */
const BOUNDS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32] as const

/** Returns the UTC day of a time, as days since the epoch. */
export const dayOf = (at: Date): number => Math.floor(at.getTime() / DAY_MS)

/**
 * Formats days since the epoch as an ISO date.
 * @example dayText(20000) → '2024-10-04'
 */
export const dayText = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

/** Sums up the payments of a period. `days` are days since the epoch, both included. */
export function revenueOf(
  sums: readonly PaymentSum[],
  catalog: Catalog,
  days: { readonly first: number; readonly last: number },
): Revenue {
  const settled = sums.filter(({ state, isOwn }) => state === 'settled' && !isOwn)
  const product = ({ operation }: PaymentSum): string => catalog.operations.get(operation)?.product ?? operation
  const plan = ({ operation }: PaymentSum): string | null => catalog.operations.get(operation)?.plan?.plan ?? null
  const earning = new Map(grouped(settled, (sum) => dayText(sum.day)).map((income) => [income.name, income]))
  const everyDay = Array.from({ length: days.last - days.first + 1 }, (_, at) => dayText(days.first + at))
  return {
    total: added('total', settled),
    own: added(
      'own wallets',
      sums.filter(({ state, isOwn }) => isOwn && state !== 'reversed'),
    ),
    owed: added(
      'owed',
      sums.filter(({ state, isOwn }) => state === 'owed' && !isOwn),
    ),
    reversed: added(
      'reversed',
      sums.filter(({ state, isOwn }) => state === 'reversed' && !isOwn),
    ),
    byProduct: largestFirst(grouped(settled, product)),
    byPlan: largestFirst(
      grouped(
        settled.filter((sum) => plan(sum) !== null),
        (sum) => plan(sum) as string,
      ),
    ),
    byNetwork: largestFirst(grouped(settled, ({ network }) => network)),
    byDay: everyDay.map((name) => earning.get(name) ?? { name, payments: 0, amount: 0n }),
  }
}

function grouped(sums: readonly PaymentSum[], nameOf: (sum: PaymentSum) => string): Income[] {
  const groups = new Map<string, PaymentSum[]>()
  for (const sum of sums) groups.set(nameOf(sum), [...(groups.get(nameOf(sum)) ?? []), sum])
  return [...groups].map(([name, own]) => added(name, own))
}

function added(name: string, sums: readonly PaymentSum[]): Income {
  return {
    name,
    payments: sums.reduce((count, sum) => count + sum.count, 0),
    amount: sums.reduce((amount, sum) => amount + sum.amount, 0n),
  }
}

function largestFirst(incomes: readonly Income[]): Income[] {
  return incomes.toSorted((one, other) => Number(other.amount - one.amount) || one.name.localeCompare(other.name))
}

/** Counts the values between `from` (exclusive) and `to` (inclusive) of each bound. `to` is null for the last bucket. */
export function histogram(
  seconds: readonly number[],
): readonly { readonly from: number; readonly to: number | null; readonly count: number }[] {
  const ends = [...BOUNDS, null]
  return ends.map((to, at) => {
    const from = BOUNDS[at - 1] ?? 0
    const count = seconds.filter((one) => (at === 0 || one > from) && (to === null || one <= to)).length
    return { from, to, count }
  })
}

/**
 * Returns a quantile by the nearest-rank method, or null if there are no values.
 * @example quantile([1, 2, 9], 0.5) → 2
 */
export function quantile(seconds: readonly number[], share: number): number | null {
  const sorted = seconds.toSorted((one, other) => one - other)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
}
