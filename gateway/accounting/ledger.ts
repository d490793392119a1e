/**
 * The ledger: sales, debts, repayments and reversals, read from the journal month by month. It can mark a debt as
 * repaid when the operator says so. It cannot move money.
 */
import type { Hex } from '../config/networks.ts'
import { InvalidInput } from '../errors.ts'
import type { Ending } from '../payments/journal/payment-states.ts'
import type { EntryTotal, Journal, LedgerEntry, PaymentRecord } from '../payments/journal/journal.ts'

/** A calendar month in UTC: the unit in which the ledger is exported. */
export interface Month {
  /** "2026-11". */
  readonly name: string
  /** Start of the month, milliseconds since the epoch. */
  readonly from: number
  /** Start of the next month, milliseconds since the epoch. */
  readonly before: number
}

/** An entry made at the very end of a month may reach the disk up to this much later. */
const LATE_MS = 3_600_000

/**
 * Parses the name of a month. Throws InvalidInput unless it looks like "2026-11".
 * @example monthOf('2026-11').before → Date.UTC(2026, 11, 1)
 */
export function monthOf(name: string): Month {
  const [, year = '', month = ''] = /^(\d{4})-(\d{2})$/.exec(name) ?? []
  const [y, m] = [Number(year), Number(month)]
  if (y < 1970 || m < 1 || m > 12) throw new InvalidInput('is not a month; write it like 2026-11', ['query', 'month'])
  return { name, from: Date.UTC(y, m - 1, 1), before: Date.UTC(y, m, 1) }
}

/** Returns the name of the month that contains a time. */
export function monthAt(at: Date): string {
  return at.toISOString().slice(0, 7)
}

/** Returns the name of the previous month. */
export function monthBefore(name: string): string {
  return monthAt(new Date(monthOf(name).from - 1))
}

/** Returns true once no entry can be added to the month any more. */
export function isOver({ before }: Month, now: Date): boolean {
  return now.getTime() >= before + LATE_MS
}

export interface LedgerParts {
  readonly journal: Pick<
    Journal,
    'ledgerEntries' | 'ledgerTotals' | 'debts' | 'list' | 'events' | 'repaid' | 'unclear' | 'decided'
  >
  /** The operator's own wallets, lower case. Their payments do not count as revenue. */
  readonly own: readonly string[]
}

/** A ledger entry, marked if one of the operator's own wallets paid. */
export interface OwnedEntry extends LedgerEntry {
  readonly isOwn: boolean
}

export interface Repayment {
  /** The transaction that settled the payment which is owed back. */
  readonly transaction: string
  /** Key of the payment; needed only if one transaction settled several payments that are owed. */
  readonly payment?: string
  /** How the money was sent back: a transaction hash or free text. */
  readonly note: string
}

/** A debt cannot be marked as repaid; the message says why. */
export class RepaymentError extends Error {}

/** The operator's decision on a debt whose end an earlier release did not record. */
export interface Decision extends Omit<Repayment, 'note'> {
  /** `repaid`: you sent the money back. `withdrawn`: you did not, and the chain took the payment back. */
  readonly ending: Exclude<Ending, 'unknown'>
}

export interface Ledger {
  /** Yields every entry of a month in order. Reads page by page, so a month of any size fits in memory. */
  month(month: Month): AsyncGenerator<OwnedEntry, void, undefined>
  /** Returns the sums of a month by network, kind and own wallets. */
  totals(month: Month): Promise<readonly EntryTotal[]>
  /** Returns every payment that is owed and not repaid, oldest first. */
  debts(): Promise<readonly PaymentRecord[]>
  /** Returns every payment of which nothing says whether its debt was repaid, oldest first. */
  unclear(): Promise<readonly PaymentRecord[]>
  /** Records how the debt of an unclear payment ended, and returns the payment. Throws RepaymentError if there is none. */
  decide(decision: Decision): Promise<PaymentRecord>
  /** Marks a debt as repaid and returns it. Throws RepaymentError if there is no such debt or it was repaid before. */
  repay(repayment: Repayment): Promise<PaymentRecord>
}

const PAGE_SIZE = 2_000
/** A transaction hash, in any case. */
export const TRANSACTION_HASH = /^0x[0-9a-f]{64}$/i

/** Creates the ledger of a journal. */
export function createLedger({ journal, own }: LedgerParts): Ledger {
  const wallets = new Set(own.map((wallet) => wallet.toLowerCase()))

  async function* month({ from, before }: Month): AsyncGenerator<OwnedEntry, void, undefined> {
    let after: LedgerEntry | undefined
    for (;;) {
      const page = await journal.ledgerEntries({ from, before, limit: PAGE_SIZE, ...(after ? { after } : {}) })
      for (const entry of page) yield { ...entry, isOwn: wallets.has(entry.payment.payer.toLowerCase()) }
      after = page.at(-1)
      if (page.length < PAGE_SIZE) return
    }
  }

  async function repay({ transaction, payment, note }: Repayment): Promise<PaymentRecord> {
    const debt = onlySettledBy(await journal.debts(), transaction, payment)
    if (!debt) throw new RepaymentError(await explainMissingDebt(transaction, payment))
    if (!(await journal.repaid(debt.key, note)))
      throw new RepaymentError('Another process has just marked this debt as repaid.')
    return debt
  }

  async function decide({ transaction, payment, ending }: Decision): Promise<PaymentRecord> {
    const unclear = onlySettledBy(await journal.unclear(), transaction, payment)
    if (!unclear || !(await journal.decided(unclear.key, ending)))
      throw new RepaymentError(`Nothing is unclear about ${transaction}.`)
    return unclear
  }

  async function explainMissingDebt(transaction: string, payment: string | undefined): Promise<string> {
    const found = await journal.list({ transaction, withoutAnswers: true, limit: 1_000 })
    const [record] = payment === undefined ? found : found.filter(({ key }) => key === payment.toLowerCase())
    if (!record) return `The ledger has no such payment settled by ${transaction}.`
    if (record.state !== 'owed') return `Nothing is owed for ${transaction}: its payment is ${record.state}.`
    const repaid = (await journal.events(record.key)).at(-1)
    return `The debt of ${transaction} was repaid on ${new Date(repaid?.at ?? 0).toISOString()} (${repaid?.note}).`
  }

  return {
    month,
    totals: (month) => journal.ledgerTotals(month, own),
    debts: () => journal.debts(),
    unclear: () => journal.unclear(),
    decide,
    repay,
  }
}

/** The one of these payments that a transaction settled. Throws RepaymentError if it settled several. */
function onlySettledBy(
  payments: readonly PaymentRecord[],
  transaction: string,
  payment: string | undefined,
): PaymentRecord | undefined {
  if (!TRANSACTION_HASH.test(transaction))
    throw new RepaymentError(`${transaction} is not a transaction hash: write 0x and 64 hex digits.`)
  const settledBy = payments.filter((one) => one.transaction?.toLowerCase() === transaction.toLowerCase())
  const matching = payment === undefined ? settledBy : settledBy.filter(({ key }) => key === payment.toLowerCase())
  if (matching.length > 1)
    throw new RepaymentError(
      `${transaction} settled several debts. Name the payment:\n${matching.map(({ key }) => key).join('\n')}`,
    )
  return matching[0]
}

/** Adds up entries one by one. */
export function createTotals() {
  const sums = new Map<string, EntryTotal>()
  return {
    add({ kind, isOwn, payment: { network, amount } }: OwnedEntry): void {
      const key = [network, kind, isOwn].join(' ')
      const known = sums.get(key)
      const count = (known?.count ?? 0) + 1
      sums.set(key, { network, kind, isOwn, count, amount: (known?.amount ?? 0n) + amount })
    },
    all: (): readonly EntryTotal[] =>
      [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, total]) => total),
  }
}

/** Returns the first transaction hash in a text, or null. */
export function transactionIn(text: string | null): Hex | null {
  return (/0x[0-9a-f]{64}(?![0-9a-f])/i.exec(text ?? '')?.[0] ?? null) as Hex | null
}
