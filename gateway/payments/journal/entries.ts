/**
 * The book that the events make: a sale where a payment was settled, a debt where its answer cannot be given, a
 * repayment where the debt was struck off. Events are never edited, so a month that is over never changes.
 */
import type { EntryKind, EntryTotal, EntryWindow, LedgerEntry } from './journal.ts'
import { type Row, toRecord } from './record.ts'

const REPAID = 'repaid: '

/** How a repayment is written into an event's detail. */
export const repaidBy = (note: string): string => `${REPAID}${note}`

const BOOKED = "state IN ('settled', 'owed')"

/** Finds the entries of a month among the events of years. */
export const BOOKED_INDEX = `CREATE INDEX IF NOT EXISTS payment_events_booked ON payment_events (at, id) WHERE ${BOOKED}`

const FIELDS = `p.key, p.attempt, p.fingerprint, p.operation, p.route, p.network, p.asset, p.payer, p.pay_to, p.amount,
  p.nonce, p.valid_after, p.valid_before, p.signature, p.version, p.price_version, p.call_id, p.identifier, p.place, p.owner,
  p.transaction_hash, p.reason, p.created_at, p.updated_at, p.settled_at, p.delivered_at`

/** The statement and values of a window; the same words for both databases. */
export function entriesQuery(
  { from, before, after = { at: from, id: -1 }, limit }: EntryWindow,
  place: (nth: number) => string,
): { readonly sql: string; readonly values: readonly number[] } {
  const sql = `
SELECT e.id AS event, e.at, e.detail, e.state, ${FIELDS}, NULL AS intent, NULL AS answer_status, NULL AS answer_body
FROM payment_events e JOIN payments p ON p.id = e.payment
WHERE e.${BOOKED} AND (e.at, e.id) > (${place(1)}, ${place(2)}) AND e.at < ${place(3)}
ORDER BY e.at, e.id LIMIT ${place(4)}`
  return { sql, values: [after.at, after.id, before, limit] }
}

/** The sums of a window, without limit; `own` payers apart. */
export function totalsQuery(
  { from, before }: Pick<EntryWindow, 'from' | 'before'>,
  own: readonly string[],
  place: (nth: number) => string,
): { readonly sql: string; readonly values: readonly (string | number)[] } {
  const among = own.map((_, at) => place(at + 3)).join(', ') || "''"
  const kind = `CASE WHEN e.state = 'settled' THEN 'sale' WHEN e.detail LIKE '${REPAID}%' THEN 'repayment' ELSE 'debt' END`
  const sql = `
SELECT p.network, ${kind} AS kind, CASE WHEN lower(p.payer) IN (${among}) THEN 1 ELSE 0 END AS own,
  count(*) AS count, CAST(sum(CAST(p.amount AS bigint)) AS text) AS amount
FROM payment_events e JOIN payments p ON p.id = e.payment
WHERE e.${BOOKED} AND e.at >= ${place(1)} AND e.at < ${place(2)} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`
  return { sql, values: [from, before, ...own.map((wallet) => wallet.toLowerCase())] }
}

export function toTotal({ network, kind, own, count, amount }: Row): EntryTotal {
  return {
    network: String(network),
    kind: String(kind) as EntryKind,
    isOwn: Number(own) === 1,
    count: Number(count),
    amount: BigInt(String(amount)),
  }
}

export function toEntry(row: Row): LedgerEntry {
  const { key, network, asset, payer, payTo, amount, operation, route, transaction, priceVersion, callId, state } =
    toRecord(row)
  const detail = typeof row['detail'] === 'string' ? row['detail'] : ''
  const isRepaid = state === 'owed' && detail.startsWith(REPAID)
  return {
    id: Number(row['event']),
    at: Number(row['at']),
    kind: state === 'settled' ? 'sale' : isRepaid ? 'repayment' : 'debt',
    note: state === 'settled' ? null : isRepaid ? detail.slice(REPAID.length) : detail,
    payment: { key, network, asset, payer, payTo, amount, operation, route, transaction, priceVersion, callId },
  }
}
