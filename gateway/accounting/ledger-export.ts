/**
 * Exports a month of the ledger as CSV or JSON for bookkeeping. Exporting the same month of the same ledger twice gives
 * the same bytes: nothing depends on the clock, on today's catalog or on the order in which processes wrote.
 */
import Papa from 'papaparse'
import type { EntryTotal } from '../payments/journal/journal.ts'
import { createTotals, type Ledger, type Month, type OwnedEntry, transactionIn } from './ledger.ts'

export type Format = 'csv' | 'json'

/** The content-type of each format. */
export const MEDIA_TYPES: Readonly<Record<Format, string>> = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json; charset=utf-8',
}

/** Prices are listed in US dollars and charged as the same number of USDC, so the rate is always 1. */
const RATE = { usd_rate: '1', usd_rate_source: 'list price in USD, asked as USDC' } as const
const BATCH_SIZE = 500
/** Cells that a spreadsheet would evaluate as a formula. The pattern of Papa itself passes cells of several lines. */
const FORMULAE = /^[=+\-@\t\r\n]/

/** One entry as a flat record, the same in CSV, JSON and webhooks. Amounts are positive; `kind` gives the direction. */
export function entryToJson({ at, kind, note, isOwn, payment }: OwnedEntry) {
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
] as const satisfies readonly (keyof ReturnType<typeof entryToJson>)[]

/** One sum of a month as JSON. */
export function totalToJson({ network, kind, isOwn, count, amount }: EntryTotal) {
  return { network, kind, own_wallets: isOwn, count, amount: decimal(amount), amount_atomic: String(amount) }
}

/** Yields the exported month in chunks of text. */
export function exportMonth(ledger: Ledger, month: Month, format: Format): AsyncGenerator<string, void, undefined> {
  return format === 'csv' ? csv(ledger, month) : json(ledger, month)
}

async function* csv(ledger: Ledger, month: Month): AsyncGenerator<string, void, undefined> {
  yield `${COLUMNS.join(',')}\r\n`
  for await (const entries of batches(ledger.month(month))) {
    const text = Papa.unparse(entries.map(entryToJson), {
      columns: [...COLUMNS],
      header: false,
      escapeFormulae: FORMULAE,
    })
    yield `${text}\r\n`
  }
}

async function* json(ledger: Ledger, month: Month): AsyncGenerator<string, void, undefined> {
  const totals = createTotals()
  const { name, from, before } = month
  const head = { month: name, from: new Date(from).toISOString(), before: new Date(before).toISOString() }
  yield `${JSON.stringify({ ...head, currency: 'USDC' }).slice(0, -1)},"entries":[`
  let separator = '\n'
  for await (const entries of batches(ledger.month(month))) {
    for (const entry of entries) totals.add(entry)
    yield separator + entries.map((entry) => JSON.stringify(entryToJson(entry))).join(',\n')
    separator = ',\n'
  }
  yield `\n],"totals":${JSON.stringify(totals.all().map(totalToJson))}}\n`
}

async function* batches(entries: AsyncIterable<OwnedEntry>): AsyncGenerator<OwnedEntry[], void, undefined> {
  let batch: OwnedEntry[] = []
  for await (const entry of entries) {
    if (batch.push(entry) < BATCH_SIZE) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/**
 * Formats atomic units as USDC with all six decimals.
 * @example decimal(5000n) → '0.005000'
 */
export function decimal(amount: bigint): string {
  const digits = amount.toString().padStart(7, '0')
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`
}
