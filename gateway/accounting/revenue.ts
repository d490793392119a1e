/** What came in: the sums of the ledger by product, plan and day. Own wallets are counted apart and never added. */
import type { Catalog } from '../plugin/catalog.ts'
import type { PaymentSum } from '../payments/journal/journal.ts'

export interface Income {
  readonly name: string
  readonly payments: number
  readonly amount: bigint
}

export interface Revenue {
  readonly total: Income
  /** What wallets of our own paid; in no other figure here. */
  readonly own: Income
  /** Settled and not deliverable. */
  readonly owed: Income
  readonly byProduct: readonly Income[]
  readonly byPlan: readonly Income[]
  /** By CAIP-2 id; the ledger keeps networks apart. */
  readonly byNetwork: readonly Income[]
  /** Every day of the window, oldest first, by ISO date. */
  readonly byDay: readonly Income[]
}

const DAY_MS = 86_400_000

/** Upper ends of the columns settle times are counted in, seconds. */
const COLUMNS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32] as const

/** A day as text: 20000 is "2024-10-04". */
export const dayText = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

export function revenueOf(
  sums: readonly PaymentSum[],
  catalog: Catalog,
  days: { readonly first: number; readonly last: number },
): Revenue {
  const settled = sums.filter(({ state, isOwn }) => state === 'settled' && !isOwn)
  const product = ({ operation }: PaymentSum): string => catalog.operations.get(operation)?.product ?? operation
  const plan = ({ operation }: PaymentSum): string | null => catalog.operations.get(operation)?.plan?.plan ?? null
  const known = new Map(grouped(settled, (sum) => dayText(sum.day)).map((income) => [income.name, income]))
  const everyDay = Array.from({ length: days.last - days.first + 1 }, (_, at) => dayText(days.first + at))
  return {
    total: added('total', settled),
    own: added(
      'own wallets',
      sums.filter(({ isOwn }) => isOwn),
    ),
    owed: added(
      'owed',
      sums.filter(({ state, isOwn }) => state === 'owed' && !isOwn),
    ),
    byProduct: largestFirst(grouped(settled, product)),
    byPlan: largestFirst(
      grouped(
        settled.filter((sum) => plan(sum) !== null),
        (sum) => plan(sum) as string,
      ),
    ),
    byNetwork: largestFirst(grouped(settled, ({ network }) => network)),
    byDay: everyDay.map((name) => known.get(name) ?? { name, payments: 0, amount: 0n }),
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

/** How many of these took at most so long, and longer than the column before; `to` is null for the last, open one. */
export function histogram(
  seconds: readonly number[],
): readonly { readonly from: number; readonly to: number | null; readonly count: number }[] {
  const ends = [...COLUMNS, null]
  return ends.map((to, at) => {
    const from = COLUMNS[at - 1] ?? 0
    const count = seconds.filter((one) => (at === 0 || one > from) && (to === null || one <= to)).length
    return { from, to, count }
  })
}

/** The value at a share of sorted seconds, nearest rank: the 0.5 of [1, 2, 9] is 2. Null where there are none. */
export function quantile(seconds: readonly number[], share: number): number | null {
  const sorted = seconds.toSorted((one, other) => one - other)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
}
