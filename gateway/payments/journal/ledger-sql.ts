/**
 * The ledger, read from the journal's events: a sale when a payment was settled, a debt when its answer cannot be
 * delivered, a repayment when the debt was repaid, a reversal when the chain took a sale back. Accounting exports it.
 */
import type { EntryKind, EntryTotal, EntryWindow, LedgerEntry } from './journal.ts'
import { ENDINGS } from './payment-states.ts'
import { type Placeholder, type Query, type Row, toRecord } from './shared-sql.ts'

/** Begins the note of every event that ends a debt. The cause of the event says that it does. */
export const REPAID = 'repaid: '

const ENDED = ENDINGS.map((ending) => `'${ending}'`).join(', ')
const IS_ENTRY = "state IN ('settled', 'owed', 'reversed')"

/** Finds the entries of one month among the events of years. It replaces an index that left reversals out. */
export const LEDGER_INDEX = `DROP INDEX IF EXISTS payment_events_booked;
CREATE INDEX IF NOT EXISTS payment_events_in_ledger ON payment_events (at, id) WHERE ${IS_ENTRY};`

const FIELDS = `p.key, p.attempt, p.fingerprint, p.operation, p.route, p.network, p.asset, p.payer, p.pay_to, p.amount,
  p.nonce, p.valid_after, p.valid_before, p.signature, p.version, p.price_version, p.call_id, p.identifier, p.place, p.owner,
  p.transaction_hash, p.reason, p.created_at, p.updated_at, p.settled_at, p.delivered_at`

/** One page of the entries of a window. */
export function ledgerEntriesQuery(
  { from, before, after = { at: from, id: -1 }, limit }: EntryWindow,
  place: Placeholder,
): Query {
  const sql = `
SELECT e.id AS event, e.at, e.note, e.cause AS event_cause, e.state, ${FIELDS}, NULL AS intent, NULL AS answer_status, NULL AS answer_body
FROM payment_events e JOIN payments p ON p.id = e.payment
WHERE e.${IS_ENTRY} AND (e.at, e.id) > (${place(1)}, ${place(2)}) AND e.at < ${place(3)}
ORDER BY e.at, e.id LIMIT ${place(4)}`
  return { sql, values: [after.at, after.id, before, limit] }
}

/** The sums of a whole window. `own` payers are summed separately. */
export function ledgerTotalsQuery(
  { from, before }: Pick<EntryWindow, 'from' | 'before'>,
  own: readonly string[],
  place: Placeholder,
): Query {
  const among = own.map((_, at) => place(at + 3)).join(', ') || "''"
  const kind = `CASE WHEN e.state = 'settled' THEN 'sale' WHEN e.state = 'reversed' THEN 'reversal' WHEN e.cause IN (${ENDED}) THEN 'repayment' ELSE 'debt' END`
  const sql = `
SELECT p.network, ${kind} AS kind, CASE WHEN lower(p.payer) IN (${among}) THEN 1 ELSE 0 END AS own,
  count(*) AS count, CAST(sum(CAST(p.amount AS bigint)) AS text) AS amount
FROM payment_events e JOIN payments p ON p.id = e.payment
WHERE e.${IS_ENTRY} AND e.at >= ${place(1)} AND e.at < ${place(2)} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`
  return { sql, values: [from, before, ...own.map((wallet) => wallet.toLowerCase())] }
}

/** Reads a row of `ledgerTotalsQuery`. */
export function toTotal({ network, kind, own, count, amount }: Row): EntryTotal {
  return {
    network: String(network),
    kind: String(kind) as EntryKind,
    isOwn: Number(own) === 1,
    count: Number(count),
    amount: BigInt(String(amount)),
  }
}

/** Reads a row of `ledgerEntriesQuery`. */
export function toLedgerEntry(row: Row): LedgerEntry {
  const { key, network, asset, payer, payTo, amount, operation, route, transaction, priceVersion, callId, state } =
    toRecord(row)
  const note = typeof row['note'] === 'string' ? row['note'] : ''
  const isRepayment = state === 'owed' && ENDINGS.some((ending) => ending === row['event_cause'])
  return {
    id: Number(row['event']),
    at: Number(row['at']),
    kind: state === 'settled' ? 'sale' : state === 'reversed' ? 'reversal' : isRepayment ? 'repayment' : 'debt',
    note: state === 'settled' ? null : isRepayment ? note.slice(REPAID.length) : note,
    payment: { key, network, asset, payer, payTo, amount, operation, route, transaction, priceVersion, callId },
  }
}
