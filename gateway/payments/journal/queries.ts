/**
 * The queries with the same SQL in both databases: everything but the three statements that write groups.
 */
import type { Hex } from '../../config/networks.ts'
import type {
  Buyer,
  CallPayment,
  JournalEvent,
  PaymentFilter,
  PaymentSum,
  Settlement,
  SettlementPage,
} from './journal.ts'
import { ledgerEntriesQuery, ledgerTotalsQuery, toLedgerEntry, toTotal } from './ledger-sql.ts'
import type { PaymentState } from './payment-states.ts'
import {
  IN_DEBT,
  KEPT,
  OPEN,
  type Placeholder,
  type Query,
  REVERSED,
  type Row,
  type Run,
  text,
  toRecord,
  UNCLEAR,
  WATCHED,
} from './shared-sql.ts'
import type { JournalQueries, StoreStatements } from './store.ts'

/** The parts of the shared SQL that differ between databases. */
interface Dialect {
  /** Runs a statement that changes nothing. */
  readonly read: Run
  /** Runs a statement that commits by itself. */
  readonly write: Run
  readonly place: Placeholder
  /** The columns of a record, the same without the answer's body, and without that of an answered payment. */
  readonly columns: string
  readonly bareColumns: string
  readonly openColumns: string
  /** SQL of how many bytes the stored answer of a payment has. */
  readonly bodyBytes: string
  /** SQL that takes a JSON array apart into a table: `nth`, which counts in the order of the array, and `value`. */
  readonly wanted: string
  /** SQL of the text in `wanted.value`, and of a text in the array that it holds. */
  readonly wantedText: string
  readonly wantedPart: (nth: number) => string
}

/** The two queries of every paid call, so that a database can prepare them. Each finds the payments of many calls. */
export function findQueries({
  columns,
  wanted,
  wantedText,
  wantedPart,
}: Pick<Dialect, 'columns' | 'wanted' | 'wantedText' | 'wantedPart'>) {
  const select = `SELECT ${columns}, wanted.nth FROM ${wanted} AS wanted CROSS JOIN payments`
  return {
    find: `${select} WHERE payments.key = ${wantedText}`,
    findByIdentifier: `${select}
      WHERE payments.payer = ${wantedPart(0)} AND payments.identifier = ${wantedPart(1)} AND payments.state <> 'released'`,
  }
}

/** The methods of the journal that are one query each. */
export function createQueries(dialect: Dialect): JournalQueries {
  const { read, write, place, columns, bareColumns, openColumns, bodyBytes, wanted, wantedText, wantedPart } = dialect
  const [one, two] = [place(1), place(2)]
  const run = ({ sql, values }: Query): Promise<readonly Row[]> => read(sql, ...values)
  const records = async (sql: string, ...values: Query['values']) =>
    (await read(sql, ...values)).map((row) => toRecord(row))
  return {
    async ofCalls(callIds) {
      const rows = await read(
        `SELECT payments.call_id, payments.state, payments.valid_before FROM ${wanted} AS wanted CROSS JOIN payments
         WHERE payments.call_id = ${wantedText}`,
        JSON.stringify(callIds),
      )
      return rows.map(toCallPayment)
    },
    openPayments: () => records(`SELECT ${openColumns} FROM payments WHERE ${OPEN} ORDER BY id`),
    list(filter) {
      const { sql, values } = listQuery(filter, dialect)
      return records(sql, ...values)
    },
    settlements: async (page) => (await run(settlementsQuery(page, place))).map(toSettlement),
    debts: () => records(`SELECT ${columns} FROM payments WHERE ${IN_DEBT} ORDER BY updated_at, id`),
    dueForLook: (at, limit) =>
      records(
        `SELECT ${bareColumns} FROM payments WHERE ${WATCHED} AND look_at <= ${one} ORDER BY look_at LIMIT ${two}`,
        at,
        limit,
      ),
    async lookAgain(looks) {
      const sql = `UPDATE payments SET look_at = CAST(${wantedPart(1)} AS bigint),
          transaction_hash = coalesce(${wantedPart(2)}, payments.transaction_hash) FROM ${wanted} AS wanted
        WHERE payments.key = ${wantedPart(0)} AND payments.${WATCHED}`
      if (looks.length > 0)
        await write(sql, JSON.stringify(looks.map(({ key, at, transaction = null }) => [key, at, transaction])))
    },
    reversals: (since, limit) =>
      records(
        `SELECT ${bareColumns} FROM payments WHERE ${REVERSED} AND updated_at >= ${one} AND coalesce(ending, 'repaid') = 'repaid' ORDER BY updated_at DESC LIMIT ${two}`,
        since,
        limit,
      ),
    dailySums: async (settledSince, own) => (await run(sumsQuery(settledSince, own, place))).map(toSum),
    topBuyers: async (settledSince, limit) => (await read(topBuyersQuery(place), settledSince, limit)).map(toBuyer),
    events: async (key) =>
      (
        await read(
          `SELECT e.at, e.attempt, e.state, e.cause, e.note FROM payment_events e JOIN payments p ON p.id = e.payment
           WHERE p.key = ${one} ORDER BY e.id`,
          key,
        )
      ).map(toEvent),
    ledgerEntries: async (window) => (await run(ledgerEntriesQuery(window, place))).map(toLedgerEntry),
    ledgerTotals: async (window, own) => (await run(ledgerTotalsQuery(window, own, place))).map(toTotal),
    unclear: () => records(`SELECT ${bareColumns} FROM payments WHERE ${UNCLEAR} ORDER BY updated_at, id`),
    async keptAnswers(payer) {
      const isOf = `payments.payer = ${one}`
      const [row] = await read(
        `SELECT count(*) AS answers, coalesce(sum(size), 0) AS bytes, count(own) AS own_answers, coalesce(sum(own), 0) AS own_bytes
         FROM (SELECT ${bodyBytes} AS size, CASE WHEN ${isOf} THEN ${bodyBytes} END AS own
           FROM payments WHERE ${OPEN} AND state = 'answered') AS kept`,
        payer,
      )
      const numberAt = (column: string): number => Number(row?.[column] ?? 0)
      const ofPayer = { answers: numberAt('own_answers'), bytes: numberAt('own_bytes') }
      return { ofPayer, all: { answers: numberAt('answers'), bytes: numberAt('bytes') } }
    },
    async refetched(key, limit) {
      const counted = await write(
        `UPDATE payments SET refetches = coalesce(refetches, 0) + 1
         WHERE key = ${one} AND coalesce(refetches, 0) < ${two} RETURNING key`,
        key,
        limit,
      )
      return counted.length === 1
    },
  }
}

/** The statements behind the other methods, with the same SQL in both databases too. */
export function createStatements(dialect: Dialect): StoreStatements {
  const { read, write, place } = dialect
  const queries = findQueries(dialect)
  const [one, two, three, four] = [place(1), place(2), place(3), place(4)]
  const findEach = async (sql: string, wanted: readonly unknown[]) => {
    const rows = await read(sql, JSON.stringify(wanted))
    const found = new Map(rows.map((row) => [Number(row['nth']), toRecord(row)]))
    return wanted.map((_, at) => found.get(at) ?? null)
  }
  return {
    find: (keys) => findEach(queries.find, keys),
    findByIdentifier: (purchases) => findEach(queries.findByIdentifier, purchases),
    async counts() {
      const rows = await read('SELECT state, sum(count) AS count FROM payment_counts GROUP BY state')
      return rows.map(({ state, count }) => ({ state: state as PaymentState, count: Number(count) }))
    },
    async claim(key, attempt, owner, at) {
      const claimed = await write(
        `UPDATE payments SET owner = ${one}, updated_at = ${two}
         WHERE key = ${three} AND attempt = ${four} AND state = 'submitted' RETURNING key`,
        owner,
        at,
        key,
        attempt,
      )
      return claimed.length === 1
    },
    async repaid(key, ending, note, at) {
      const repaid = await write(
        `UPDATE payments SET state = 'owed', repaid_at = ${one}, updated_at = ${one}, note = ${three},
           ending = CASE WHEN ${UNCLEAR} AND ${two} = 'withdrawn' THEN ending ELSE ${two} END
         WHERE key = ${four} AND state = 'owed' AND repaid_at IS NULL RETURNING key`,
        at,
        ending,
        note,
        key,
      )
      return repaid.length === 1
    },
    async decided(key, ending, at) {
      const decided = await write(
        `UPDATE payments SET ending = ${one}, look_at = ${two} WHERE key = ${three} AND ${UNCLEAR} RETURNING key`,
        ending,
        at,
        key,
      )
      return decided.length === 1
    },
    async forget(settledBefore, limit) {
      const forgotten = await write(
        `UPDATE payments SET answer_headers = NULL, answer_body = NULL, identifier = NULL, place = NULL WHERE id IN (
           SELECT id FROM payments WHERE ${KEPT} AND settled_at < ${one} LIMIT ${two}
         ) RETURNING id`,
        settledBefore,
        limit,
      )
      return forgotten.length
    },
    async touch(owner, at, forgetBefore) {
      await write(`DELETE FROM payment_owners WHERE seen_at < ${one}`, forgetBefore)
      await write(
        `INSERT INTO payment_owners VALUES (${one}, ${two})
         ON CONFLICT (instance) DO UPDATE SET seen_at = excluded.seen_at`,
        owner,
        at,
      )
    },
    async leave(owner) {
      await write(`DELETE FROM payment_owners WHERE instance = ${one}`, owner)
    },
    seenSince: async (at) =>
      (await read(`SELECT instance FROM payment_owners WHERE seen_at >= ${one}`, at)).map(({ instance }) =>
        String(instance),
      ),
  }
}

function listQuery(filter: PaymentFilter, { place, columns: all, bareColumns }: Dialect): Query {
  const { states, operations, payer, transaction, call, network, before, withoutAnswers: bare, limit } = filter
  const values: (string | number)[] = []
  const next = (value: string | number): string => place(values.push(value))
  const among = (column: string, list: readonly string[]): string =>
    `${column} IN (${list.map(next).join(', ') || 'NULL'})`
  const conditions = [
    ...(states ? [among('state', states)] : []),
    ...(operations ? [among('operation', operations)] : []),
    ...(payer === undefined ? [] : [`lower(payer) = ${next(payer.toLowerCase())}`]),
    ...(transaction === undefined ? [] : [`lower(transaction_hash) = ${next(transaction.toLowerCase())}`]),
    ...(call === undefined ? [] : [`call_id = ${next(call)}`]),
    ...(network === undefined ? [] : [`network = ${next(network)}`]),
    ...(before === undefined ? [] : [`id < (SELECT id FROM payments WHERE key = ${next(before)})`]),
  ]
  const columns = bare ? bareColumns : all
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  // `+id` keeps a database from reading all payments in this order where an index finds the few that are wanted.
  const order = transaction === undefined && call === undefined ? 'id' : '+id'
  return { sql: `SELECT ${columns} FROM payments ${where} ORDER BY ${order} DESC LIMIT ${next(limit)}`, values }
}

function toCallPayment(row: Row): CallPayment {
  return {
    callId: text(row, 'call_id'),
    state: text(row, 'state') as PaymentState,
    expiresAt: BigInt(text(row, 'valid_before')),
  }
}

function settlementsQuery({ from, limit }: SettlementPage, place: Placeholder): Query {
  const [at, id] = typeof from === 'number' ? [from, -1] : [from.settledAt, from.id]
  const sql = `
SELECT id, key, network, payer, pay_to, amount, transaction_hash, settled_at FROM payments
WHERE settled_at IS NOT NULL AND (settled_at, id) > (${place(1)}, ${place(2)}) AND state IN ('settled', 'owed')
ORDER BY settled_at, id LIMIT ${place(3)}`
  return { sql, values: [at, id, limit] }
}

function toSettlement(row: Row): Settlement {
  return {
    id: Number(row['id']),
    key: text(row, 'key'),
    network: text(row, 'network'),
    payer: text(row, 'payer') as Hex,
    payTo: text(row, 'pay_to') as Hex,
    amount: BigInt(text(row, 'amount')),
    transaction: row['transaction_hash'] as Hex | null,
    settledAt: Number(row['settled_at']),
  }
}

const DAY_MS = 86_400_000

function sumsQuery(settledSince: number, own: readonly string[], place: Placeholder): Query {
  const among = own.map((_, at) => place(at + 2)).join(', ') || "''"
  const sql = `
SELECT settled_at / ${DAY_MS} AS day, operation, network, state,
  CASE WHEN lower(payer) IN (${among}) THEN 1 ELSE 0 END AS own, count(*) AS count, count(DISTINCT lower(payer)) AS payers,
  CAST(sum(CAST(amount AS bigint)) AS text) AS amount
FROM payments WHERE state IN ('settled', 'owed', 'reversed') AND settled_at >= ${place(1)}
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5`
  return { sql, values: [settledSince, ...own.map((address) => address.toLowerCase())] }
}

const topBuyersQuery = (place: Placeholder): string => `
SELECT operation, payer, payments, CAST(amount AS text) AS amount, buyers FROM (
  SELECT operation, lower(payer) AS payer, count(*) AS payments, sum(CAST(amount AS bigint)) AS amount,
    count(*) OVER (PARTITION BY operation) AS buyers,
    row_number() OVER (PARTITION BY operation ORDER BY sum(CAST(amount AS bigint)) DESC, lower(payer)) AS nth
  FROM payments WHERE state = 'settled' AND settled_at >= ${place(1)} GROUP BY operation, lower(payer)) AS ranked
WHERE nth <= ${place(2)} ORDER BY operation, nth`

function toBuyer(row: Row): Buyer {
  return {
    operation: text(row, 'operation'),
    payer: text(row, 'payer'),
    payments: Number(row['payments']),
    amount: BigInt(text(row, 'amount')),
    buyers: Number(row['buyers']),
  }
}

function toSum(row: Row): PaymentSum {
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

function toEvent(row: Row): JournalEvent {
  return {
    at: Number(row['at']),
    attempt: Number(row['attempt']),
    state: text(row, 'state') as PaymentState,
    cause: row['cause'] as JournalEvent['cause'],
    note: row['note'] as string | null,
  }
}
