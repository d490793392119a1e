/**
 * The ledger as books: what was sold, what is owed and what was repaid. It reads, and strikes a debt off when a person
 * says that it was repaid; it can send nothing.
 */
import type { EntryTotal, LedgerEntry, Journal, PaymentRecord } from '../payments/journal/journal.ts'
import type { Hex } from '../config/networks.ts'
import type { Month } from './month.ts'

export interface BookParts {
  readonly journal: Pick<Journal, 'ledgerEntries' | 'ledgerTotals' | 'debts' | 'list' | 'events' | 'repaid'>
  /** Wallets whose payments are no revenue, lower case. */
  readonly own: readonly string[]
}

export interface BookedEntry extends LedgerEntry {
  /** Paid by a wallet of our own. */
  readonly isOwn: boolean
}

export interface Repayment {
  /** Settlement of the debt. */
  readonly transaction: string
  /** Key of the payment; needed only where one transaction settled several that are owed. */
  readonly payment?: string
  /** How it was repaid: a transaction, or words. */
  readonly note: string
}

/** Says why a debt cannot be struck off. */
export class NoDebt extends Error {}

export interface Book {
  /** Every entry of a month, in order; read piece by piece, so that a month of any size fits. */
  month(month: Month): AsyncGenerator<BookedEntry, void, undefined>
  /** What a month adds up to, by network, kind and whether it was our own wallets. */
  totals(month: Month): Promise<readonly EntryTotal[]>
  /** Owed and not repaid, oldest first. */
  debts(): Promise<readonly PaymentRecord[]>
  /** Strikes a debt off and returns it. Throws NoDebt where there is none, or it was repaid before. */
  repay(repayment: Repayment): Promise<PaymentRecord>
}

const AT_ONCE = 2_000
const HASH = /^0x[0-9a-f]{64}$/i

export function createBook({ journal, own }: BookParts): Book {
  const wallets = new Set(own.map((wallet) => wallet.toLowerCase()))

  async function* month({ from, before }: Month): AsyncGenerator<BookedEntry, void, undefined> {
    let after: LedgerEntry | undefined
    for (;;) {
      const page = await journal.ledgerEntries({ from, before, limit: AT_ONCE, ...(after ? { after } : {}) })
      for (const entry of page) yield { ...entry, isOwn: wallets.has(entry.payment.payer.toLowerCase()) }
      after = page.at(-1)
      if (page.length < AT_ONCE) return
    }
  }

  async function repay({ transaction, payment, note }: Repayment): Promise<PaymentRecord> {
    if (!HASH.test(transaction)) throw new NoDebt(`${transaction} is no transaction: 0x and 64 hex digits.`)
    const same = (await journal.debts()).filter((debt) => debt.transaction?.toLowerCase() === transaction.toLowerCase())
    const meant = payment === undefined ? same : same.filter(({ key }) => key === payment.toLowerCase())
    if (meant.length > 1)
      throw new NoDebt(
        `${transaction} settled several debts. Name the payment:\n${meant.map(({ key }) => key).join('\n')}`,
      )
    const [debt] = meant
    if (!debt) throw new NoDebt(await reasonOf(transaction, payment))
    if (!(await journal.repaid(debt.key, note))) throw new NoDebt('Somebody else struck this debt off just now.')
    return debt
  }

  async function reasonOf(transaction: string, payment: string | undefined): Promise<string> {
    const found = await journal.list({ transaction, withoutAnswers: true, limit: 1_000 })
    const [record] = payment === undefined ? found : found.filter(({ key }) => key === payment.toLowerCase())
    if (!record) return `The ledger has no such payment settled by ${transaction}.`
    if (record.state !== 'owed') return `Nothing is owed for ${transaction}: its payment is ${record.state}.`
    const struck = (await journal.events(record.key)).at(-1)
    return `The debt of ${transaction} was struck off on ${new Date(struck?.at ?? 0).toISOString()} (${struck?.detail}).`
  }

  return { month, totals: (month) => journal.ledgerTotals(month, own), debts: () => journal.debts(), repay }
}

/** Adds entries up as they pass. */
export function createTotals() {
  const sums = new Map<string, EntryTotal>()
  return {
    add({ kind, isOwn, payment: { network, amount } }: BookedEntry): void {
      const key = [network, kind, isOwn].join(' ')
      const known = sums.get(key)
      const count = (known?.count ?? 0) + 1
      sums.set(key, { network, kind, isOwn, count, amount: (known?.amount ?? 0n) + amount })
    },
    all: (): readonly EntryTotal[] =>
      [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, total]) => total),
  }
}

/** The transaction a note names, if it names one. */
export function transactionIn(note: string | null): Hex | null {
  return (/0x[0-9a-f]{64}(?![0-9a-f])/i.exec(note ?? '')?.[0] ?? null) as Hex | null
}
