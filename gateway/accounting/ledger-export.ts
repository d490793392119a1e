/**
 * A month of the ledger as CSV or JSON for whoever keeps the books. The same month of the same ledger is the same
 * bytes: nothing in it is taken from the clock, the catalog of today or the order in which processes wrote.
 */
import Papa from 'papaparse'
import type { EntryTotal } from '../payments/journal/journal.ts'
import { type Book, type BookedEntry, createTotals, transactionIn } from './ledger.ts'
import type { Month } from './month.ts'

export type Format = 'csv' | 'json'

export const MEDIA: Readonly<Record<Format, string>> = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json; charset=utf-8',
}

/** The only rate there is: a price in dollars is asked as the same number of USDC. */
const RATE = { usd_rate: '1', usd_rate_source: 'list price in USD, asked as USDC' } as const
const AT_ONCE = 500

/** One entry, as both forms say it. Amounts are positive; `kind` says which way. */
export function lineOf({ at, kind, note, isOwn, payment }: BookedEntry) {
  return {
    at: new Date(at).toISOString(),
    kind,
    amount: decimal(payment.amount),
    currency: 'USDC',
    ...RATE,
    amount_atomic: String(payment.amount),
    network: payment.network,
    asset: payment.asset,
    transaction: payment.transaction ?? '',
    repaid_by: kind === 'repayment' ? (transactionIn(note) ?? '') : '',
    payer: payment.payer,
    pay_to: payment.payTo,
    own_wallet: isOwn ? 'yes' : 'no',
    operation: payment.operation,
    route: payment.route,
    catalog_version: payment.priceVersion,
    call: payment.callId,
    payment: payment.key,
    note: note ?? '',
  }
}

const COLUMNS = [
  'at',
  'kind',
  'amount',
  'currency',
  'usd_rate',
  'usd_rate_source',
  'amount_atomic',
  'network',
  'asset',
  'transaction',
  'repaid_by',
  'payer',
  'pay_to',
  'own_wallet',
  'operation',
  'route',
  'catalog_version',
  'call',
  'payment',
  'note',
] as const satisfies readonly (keyof ReturnType<typeof lineOf>)[]

export function totalOf({ network, kind, isOwn, count, amount }: EntryTotal) {
  return { network, kind, own_wallets: isOwn, count, amount: decimal(amount), amount_atomic: String(amount) }
}

/** The text of a month, in pieces. */
export function exported(book: Book, month: Month, format: Format): AsyncGenerator<string, void, undefined> {
  return format === 'csv' ? csv(book, month) : json(book, month)
}

async function* csv(book: Book, month: Month): AsyncGenerator<string, void, undefined> {
  yield `${COLUMNS.join(',')}\r\n`
  for await (const entries of pieces(book.month(month))) {
    // A cell that a spreadsheet would take for a formula is written as text.
    const text = Papa.unparse(entries.map(lineOf), { columns: [...COLUMNS], header: false, escapeFormulae: true })
    yield `${text}\r\n`
  }
}

async function* json(book: Book, month: Month): AsyncGenerator<string, void, undefined> {
  const totals = createTotals()
  const { name, from, before } = month
  const head = { month: name, from: new Date(from).toISOString(), before: new Date(before).toISOString() }
  yield `${JSON.stringify({ ...head, currency: 'USDC' }).slice(0, -1)},"entries":[`
  let separator = '\n'
  for await (const entries of pieces(book.month(month))) {
    for (const entry of entries) totals.add(entry)
    yield separator + entries.map((entry) => JSON.stringify(lineOf(entry))).join(',\n')
    separator = ',\n'
  }
  yield `\n],"totals":${JSON.stringify(totals.all().map(totalOf))}}\n`
}

async function* pieces(entries: AsyncIterable<BookedEntry>): AsyncGenerator<BookedEntry[], void, undefined> {
  let piece: BookedEntry[] = []
  for await (const entry of entries) {
    if (piece.push(entry) < AT_ONCE) continue
    yield piece
    piece = []
  }
  if (piece.length > 0) yield piece
}

/** Atomic units as USDC with all six decimals: 5000n is "0.005000". */
export function decimal(amount: bigint): string {
  const digits = amount.toString().padStart(7, '0')
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`
}
