/**
 * The ledger in PostgreSQL, shared by any number of processes. A group is one statement, which commits by itself; rows
 * guard themselves (ON CONFLICT, and state and attempt compared under the row lock).
 */
import { DatabaseError, Pool } from 'pg'
import type { PaymentState } from './journal.ts'
import { type Change, encode } from './changes.ts'
import { BOOKED_INDEX, entriesQuery, toEntry, totalsQuery, toTotal } from './entries.ts'
import {
  COLUMNS,
  IDENTIFIED,
  listQuery,
  OPEN,
  RESERVED_COLUMNS,
  type Row,
  sumsQuery,
  toEvent,
  toRecord,
  toSum,
} from './record.ts'
import { DELIVERING, FORGETTING, MAY_DELIVER, MAY_MOVE, moving, TAKEOVER } from './statements.ts'
import { moved, reserved, type Store } from './store.ts'

const SCHEMA = `
CREATE TABLE payments (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key text NOT NULL UNIQUE,
  state text NOT NULL CHECK (state IN ('reserved', 'answered', 'submitted', 'settled', 'released', 'owed')),
  attempt integer NOT NULL CHECK (attempt > 0),
  fingerprint text NOT NULL, operation text NOT NULL, route text NOT NULL,
  network text NOT NULL, asset text NOT NULL, payer text NOT NULL, pay_to text NOT NULL, amount numeric(78, 0) NOT NULL,
  nonce text NOT NULL, valid_after numeric(78, 0) NOT NULL, valid_before numeric(78, 0) NOT NULL,
  signature text NOT NULL, version integer NOT NULL, price_version text NOT NULL, call_id text NOT NULL,
  owner text NOT NULL, intent text, transaction_hash text, reason text, detail text,
  created_at bigint NOT NULL, updated_at bigint NOT NULL, settled_at bigint, repaid_at bigint,
  answer_status integer, answer_headers text, answer_body bytea
);
CREATE INDEX payments_by_state ON payments (state);
CREATE INDEX payments_by_payer ON payments (lower(payer), id);
CREATE INDEX payments_open ON payments (id) WHERE ${OPEN};
CREATE INDEX payments_kept ON payments (settled_at) WHERE answer_body IS NOT NULL AND state = 'settled';

CREATE TABLE payment_events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  payment bigint NOT NULL REFERENCES payments (id),
  attempt integer NOT NULL, state text NOT NULL, at bigint NOT NULL, detail text
);
CREATE INDEX payment_events_by_payment ON payment_events (payment);
CREATE TABLE payment_instances (instance text PRIMARY KEY, seen_at bigint NOT NULL);

CREATE FUNCTION payment_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO payment_events (payment, attempt, state, at, detail)
  VALUES (new.id, new.attempt, new.state, new.updated_at, new.detail);
  RETURN NULL;
END $$;
CREATE FUNCTION payment_stands() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION '% is append-only: no %', tg_table_name, lower(tg_op);
END $$;
CREATE TRIGGER payments_move AFTER INSERT OR UPDATE OF state ON payments
  FOR EACH ROW EXECUTE FUNCTION payment_event();
CREATE TRIGGER payments_stay BEFORE DELETE OR TRUNCATE ON payments
  FOR EACH STATEMENT EXECUTE FUNCTION payment_stands();
CREATE TRIGGER payment_events_stand BEFORE UPDATE OR DELETE OR TRUNCATE ON payment_events
  FOR EACH STATEMENT EXECUTE FUNCTION payment_stands();`

const UNIQUE_VIOLATION = '23505'

/** Any number that only this schema change takes as its advisory lock. */
const SCHEMA_LOCK = 402_402_402

// In the order of their keys, so that two processes never wait for each other in a circle.
const RESERVE = `
INSERT INTO payments (key, state, attempt, created_at, updated_at, ${RESERVED_COLUMNS.join(', ')})
SELECT key, 'reserved', 1, at, at, ${RESERVED_COLUMNS.join(', ')}
FROM json_to_recordset($1::json) AS change(
  key text, at bigint, fingerprint text, operation text, route text, network text, asset text, payer text, pay_to text,
  amount numeric, nonce text, valid_after numeric, valid_before numeric, signature text, version integer,
  price_version text, call_id text, identifier text, place text, owner text, detail text)
WHERE NOT EXISTS (
  SELECT 1 FROM payments AS other WHERE other.payer = change.payer AND other.identifier = change.identifier
    AND other.state <> 'released' AND other.key <> change.key)
ORDER BY key
${TAKEOVER}`

const MOVE = `
${moving('substring($2::bytea FROM change.body_start FOR change.body_length)')}
FROM json_to_recordset($1::json) AS change(
  key text, attempt integer, state text, allowed text, owned text, at bigint, owner text, detail text, intent text,
  transaction_hash text, reason text, answer_status integer, answer_headers text, body_start integer, body_length integer)
WHERE ${MAY_MOVE}`

const DELIVER = `
${DELIVERING} FROM json_to_recordset($1::json) AS change(key text, at bigint) WHERE ${MAY_DELIVER}`

const AMONG = `
SELECT payments.*, change.key AS wanted FROM json_to_recordset($1::json) AS change(key text, payer text, identifier text)
JOIN payments ON payments.key = change.key
  OR (payments.payer = change.payer AND payments.identifier = change.identifier AND payments.state <> 'released')`

const CLAIM = `
UPDATE payments SET owner = $1, updated_at = $2 WHERE key = $3 AND attempt = $4 AND state = 'submitted' RETURNING key`

const REPAID = `
UPDATE payments SET state = 'owed', repaid_at = $1, updated_at = $1, detail = $2
WHERE key = $3 AND state = 'owed' AND repaid_at IS NULL RETURNING key`

const FORGET = `
${FORGETTING} WHERE id IN (
  SELECT id FROM payments WHERE answer_body IS NOT NULL AND state = 'settled' AND settled_at < $1 LIMIT $2
) RETURNING id`

/** Columns that later releases added, and how. */
const ADDED = {
  identifier: `ALTER TABLE payments ADD COLUMN identifier text; ${IDENTIFIED}`,
  place: 'ALTER TABLE payments ADD COLUMN place text',
  delivered_at: 'ALTER TABLE payments ADD COLUMN delivered_at bigint',
} as const

/** Opens or creates the ledger in the database's current schema. */
export async function openPostgres(url: string): Promise<Store> {
  const pool = new Pool({ connectionString: durable(url), max: 4, application_name: 'ledger' })
  // A connection lost while idle is replaced on next use; without a listener it would end the process.
  pool.on('error', () => {})
  await createSchema(pool)
  const rows = async (text: string, values: readonly unknown[] = [], name?: string): Promise<readonly Row[]> =>
    (await pool.query<Row>({ text, values: [...values], ...(name === undefined ? {} : { name }) })).rows

  return {
    async write(group: readonly Change[]) {
      const { fields, bodies } = encode(group)
      if (group[0]?.kind === 'move') return moved(group, await rows(MOVE, [fields, bodies], 'move'))
      if (group[0]?.kind === 'deliver') return moved(group, await rows(DELIVER, [fields], 'deliver'))
      const reserve = (): Promise<readonly Row[]> => rows(RESERVE, [fields], 'reserve')
      // Another process reserved the same identifier at this moment. It has committed by now, and is seen.
      const taken = await reserve().catch((error: unknown) => {
        if (error instanceof DatabaseError && error.code === UNIQUE_VIOLATION) return reserve()
        throw error
      })
      return reserved(group, taken, (wanted) => rows(AMONG, [wanted], 'among'))
    },
    // An error the server reports is a statement rolled back; a broken connection tells nothing.
    wroteNothing: (error) => error instanceof DatabaseError && !error.code?.startsWith('57P'),
    claim: async (key, attempt, owner, at) => (await rows(CLAIM, [owner, at, key, attempt])).length === 1,
    repaid: async (key, note, at) => (await rows(REPAID, [at, note, key])).length === 1,
    forget: async (settledBefore, limit) => (await rows(FORGET, [settledBefore, limit])).length,
    identified: async (payer, identifier) =>
      (
        await rows(
          `SELECT ${COLUMNS} FROM payments WHERE payer = $1 AND identifier = $2 AND state <> 'released'`,
          [payer, identifier],
          'identified',
        )
      ).map(toRecord)[0] ?? null,
    find: async (key) =>
      (await rows(`SELECT ${COLUMNS} FROM payments WHERE key = $1`, [key], 'find')).map(toRecord)[0] ?? null,
    open: async () => (await rows(`SELECT ${COLUMNS} FROM payments WHERE ${OPEN} ORDER BY id`)).map(toRecord),
    async list(filter) {
      const { sql, values } = listQuery(filter, (nth) => `$${nth}`)
      return (await rows(sql, values)).map(toRecord)
    },
    async sums(settledSince, own) {
      const { sql, values } = sumsQuery(settledSince, own, (nth) => `$${nth}`)
      return (await rows(sql, values)).map(toSum)
    },
    debts: async () =>
      (
        await rows(`SELECT ${COLUMNS} FROM payments WHERE state = 'owed' AND repaid_at IS NULL ORDER BY updated_at, id`)
      ).map(toRecord),
    async counts() {
      const found = await rows('SELECT state, count(*) AS count FROM payments GROUP BY state')
      return found.map(({ state, count }) => ({ state: state as PaymentState, count: Number(count) }))
    },
    events: async (key) =>
      (
        await rows(
          `SELECT e.at, e.attempt, e.state, e.detail FROM payment_events e JOIN payments p ON p.id = e.payment
           WHERE p.key = $1 ORDER BY e.id`,
          [key],
        )
      ).map(toEvent),
    async entries(window) {
      const { sql, values } = entriesQuery(window, (nth) => `$${nth}`)
      return (await rows(sql, values)).map(toEntry)
    },
    async totals(window, own) {
      const { sql, values } = totalsQuery(window, own, (nth) => `$${nth}`)
      return (await rows(sql, values)).map(toTotal)
    },
    async touch(instance, at, forgetBefore) {
      await rows('DELETE FROM payment_instances WHERE seen_at < $1', [forgetBefore])
      await rows(
        'INSERT INTO payment_instances VALUES ($1, $2) ON CONFLICT (instance) DO UPDATE SET seen_at = excluded.seen_at',
        [instance, at],
      )
    },
    async leave(instance) {
      await rows('DELETE FROM payment_instances WHERE instance = $1', [instance])
    },
    seenSince: async (at) =>
      (await rows('SELECT instance FROM payment_instances WHERE seen_at >= $1', [at])).map((row) =>
        String(row['instance']),
      ),
    close: () => pool.end(),
  }
}

/** The same address, asking for commits that are on disk when they return, whatever the server's default is. */
function durable(url: string): string {
  const address = new URL(url)
  const options = address.searchParams.get('options')
  address.searchParams.set('options', `${options === null ? '' : `${options} `}-c synchronous_commit=on`)
  return address.href
}

async function createSchema(pool: Pool): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    // Of two processes that start together one creates the tables and the other finds them.
    await client.query('SELECT pg_advisory_xact_lock($1)', [SCHEMA_LOCK])
    const { rows } = await client.query<{ missing: boolean }>(
      "SELECT to_regclass(quote_ident(current_schema()) || '.payments') IS NULL AS missing",
    )
    if (rows[0]?.missing) await client.query(SCHEMA)
    for (const [column, step] of Object.entries(ADDED)) {
      const { rowCount } = await client.query(
        "SELECT FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'payments' AND column_name = $1",
        [column],
      )
      if (rowCount === 0) await client.query(step)
    }
    await client.query(BOOKED_INDEX)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}
