/** Rows of the ledger as records, the same for both databases. */
import type { JournalEvent, OpenPayment, PaymentFilter, PaymentState, PaymentSum } from './journal.ts'
import type { Intent } from '../../methods/payment-method.ts'
import type { Hex } from '../../config/networks.ts'

/** All columns of `payments` that a record is made of; the answer's body is last, so that a row is read cheaply. */
export const COLUMNS = `key, state, attempt, fingerprint, operation, route, network, asset, payer, pay_to, amount, nonce,
  valid_after, valid_before, signature, version, price_version, call_id, identifier, place, owner, intent, transaction_hash,
  reason, created_at, updated_at, settled_at, delivered_at, answer_status, answer_headers, answer_body`

/** What a reservation writes beside state, attempt, owner and times; on a takeover all of it is replaced. */
export const RESERVED_COLUMNS = [
  'fingerprint',
  'operation',
  'route',
  'network',
  'asset',
  'payer',
  'pay_to',
  'amount',
  'nonce',
  'valid_after',
  'valid_before',
  'signature',
  'version',
  'price_version',
  'call_id',
  'identifier',
  'place',
  'owner',
  'detail',
] as const

/** As the drivers give it: SQLite integers are numbers, PostgreSQL bigints and numerics are decimal strings. */
export type Row = Readonly<Record<string, string | number | Buffer | null>>

export function toRecord(row: Row): OpenPayment {
  const status = row['answer_status']
  const body = row['answer_body']
  const hasAnswer = typeof status === 'number' && Buffer.isBuffer(body)
  return {
    key: text(row, 'key'),
    state: text(row, 'state') as PaymentState,
    attempt: Number(row['attempt']),
    fingerprint: text(row, 'fingerprint'),
    operation: text(row, 'operation'),
    route: text(row, 'route'),
    network: text(row, 'network'),
    asset: text(row, 'asset') as Hex,
    payer: text(row, 'payer') as Hex,
    payTo: text(row, 'pay_to') as Hex,
    amount: BigInt(text(row, 'amount')),
    nonce: text(row, 'nonce') as Hex,
    validAfter: BigInt(text(row, 'valid_after')),
    validBefore: BigInt(text(row, 'valid_before')),
    signature: text(row, 'signature') as Hex,
    version: Number(row['version']) as 1 | 2,
    priceVersion: text(row, 'price_version'),
    callId: text(row, 'call_id'),
    identifier: row['identifier'] as string | null,
    place: row['place'] as string | null,
    owner: text(row, 'owner'),
    answer: hasAnswer ? { status, headers: JSON.parse(text(row, 'answer_headers')), body } : null,
    intent: row['intent'] === null ? null : (JSON.parse(text(row, 'intent')) as Intent),
    transaction: row['transaction_hash'] as Hex | null,
    reason: row['reason'] as string | null,
    createdAt: Number(row['created_at']),
    updatedAt: Number(row['updated_at']),
    settledAt: moment(row, 'settled_at'),
    deliveredAt: moment(row, 'delivered_at'),
  }
}

export function toEvent(row: Row): JournalEvent {
  return {
    at: Number(row['at']),
    attempt: Number(row['attempt']),
    state: text(row, 'state') as PaymentState,
    detail: row['detail'] as string | null,
  }
}

function text(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new TypeError(`the ledger has no text in ${column}`)
  return value
}

function moment(row: Row, column: string): number | null {
  const at = row[column] ?? null
  return at === null ? null : Number(at)
}

/** A payer has one payment by each identifier; a released payment gives its identifier free. */
export const IDENTIFIED = `CREATE UNIQUE INDEX payments_identified ON payments (payer, identifier)
  WHERE identifier IS NOT NULL AND state <> 'released'`

/** Rows that are not finished. The same words stand in the index that finds them. */
export const OPEN = `(state IN ('reserved', 'answered', 'submitted') OR (state = 'settled' AND answer_status IS NULL))`

/** The statement and values of a listing; `place` gives the placeholder of the nth value, from 1. */
export function listQuery(
  { states, operations, payer, transaction, settledSince, settledBefore, bare, limit }: PaymentFilter,
  place: (nth: number) => string,
): { readonly sql: string; readonly values: readonly (string | number)[] } {
  const values: (string | number)[] = []
  const next = (value: string | number): string => place(values.push(value))
  const among = (column: string, list: readonly string[]): string =>
    `${column} IN (${list.map(next).join(', ') || 'NULL'})`
  const conditions = [
    ...(states ? [among('state', states)] : []),
    ...(operations ? [among('operation', operations)] : []),
    ...(payer === undefined ? [] : [`lower(payer) = ${next(payer.toLowerCase())}`]),
    ...(transaction === undefined ? [] : [`lower(transaction_hash) = ${next(transaction.toLowerCase())}`]),
    ...(settledSince === undefined ? [] : [`settled_at >= ${next(settledSince)}`]),
    ...(settledBefore === undefined ? [] : [`settled_at < ${next(settledBefore)}`]),
  ]
  const columns = bare ? COLUMNS.replace('answer_body', 'NULL AS answer_body') : COLUMNS
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  return { sql: `SELECT ${columns} FROM payments ${where} ORDER BY id DESC LIMIT ${next(limit)}`, values }
}

const DAY_MS = 86_400_000

/** The statement and values of the sums; the same words for both databases. */
export function sumsQuery(
  settledSince: number,
  own: readonly string[],
  place: (nth: number) => string,
): { readonly sql: string; readonly values: readonly (string | number)[] } {
  const among = own.map((_, at) => place(at + 2)).join(', ') || "''"
  const sql = `
SELECT settled_at / ${DAY_MS} AS day, operation, network, state,
  CASE WHEN lower(payer) IN (${among}) THEN 1 ELSE 0 END AS own, count(*) AS count, count(DISTINCT lower(payer)) AS payers,
  CAST(sum(CAST(amount AS bigint)) AS text) AS amount
FROM payments WHERE state IN ('settled', 'owed') AND settled_at >= ${place(1)}
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5`
  return { sql, values: [settledSince, ...own.map((address) => address.toLowerCase())] }
}

export function toSum(row: Row): PaymentSum {
  return {
    day: Number(row['day']),
    operation: text(row, 'operation'),
    network: text(row, 'network'),
    state: text(row, 'state') as PaymentState,
    isOwn: Number(row['own']) === 1,
    count: Number(row['count']),
    payers: Number(row['payers']),
    amount: BigInt(text(row, 'amount')),
  }
}
