/**
 * The journal in PostgreSQL, shared by any number of processes. A group is one statement, which commits by itself. Rows
 * protect themselves: ON CONFLICT, and state and attempt are compared under the row lock.
 */
import { DatabaseError, Pool, type PoolClient } from 'pg'
import { DataError } from '../../stores/data-error.ts'
import {
  addColumns,
  addEventCause,
  type Column,
  createTables,
  MOVED_COLUMNS,
  RESERVED_COLUMNS,
  typed,
} from './columns.ts'
import { LEDGER_INDEX } from './ledger-sql.ts'
import { READ_OLD_WORDS } from './read-old-words.ts'
import { COSTLY_INDEX, LIMITED_COLUMNS, payerLimitSql, REVERTED_INDEXES } from './payer-limits.ts'
import { createQueries, createStatements, findQueries } from './queries.ts'
import {
  bodyIfSent,
  CALL_INDEX,
  columns,
  comesAfter,
  deliveriesTable,
  deliverStatement,
  EVENT_CAUSE,
  IDENTIFIER_INDEX,
  KEPT_INDEX,
  LOOKUP_INDEXES,
  MAY_MOVE,
  moveStatement,
  OPEN,
  type Row,
  type Run,
  TAKEOVER,
  UNCLEAR_INDEX,
  UNSETTLED_INDEX,
  WATCHED_INDEXES,
} from './shared-sql.ts'
import {
  type Change,
  deliveredResults,
  encode,
  movedResults,
  reservedResults,
  type StorageFailure,
  type Store,
} from './store.ts'

const SCHEMA = `
${createTables('postgres')}
CREATE INDEX payments_by_state ON payments (state);
CREATE INDEX payments_by_payer ON payments (lower(payer), id);
CREATE INDEX payments_open ON payments (id) WHERE ${OPEN};
CREATE INDEX payments_kept ON payments (settled_at) WHERE answer_body IS NOT NULL AND state = 'settled';
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

/**
 * The number of payments in each state, kept by the statement that moves them. Each connection has rows of its own, so
 * that no two transactions wait for each other.
 */
const COUNTS = `
CREATE TABLE payment_counts (
  connection integer NOT NULL, state text NOT NULL, count bigint NOT NULL, PRIMARY KEY (connection, state)
);
INSERT INTO payment_counts SELECT 0, state, count(*) FROM payments GROUP BY state;
CREATE FUNCTION payments_count_new() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO payment_counts SELECT pg_backend_pid(), state, count(*) FROM new_rows GROUP BY state
  ON CONFLICT (connection, state) DO UPDATE SET count = payment_counts.count + excluded.count;
  RETURN NULL;
END $$;
CREATE FUNCTION payments_count_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO payment_counts SELECT pg_backend_pid(), state, sum(change) FROM (
    SELECT n.state, 1 AS change FROM new_rows n JOIN old_rows o USING (id) WHERE n.state <> o.state
    UNION ALL SELECT o.state, -1 FROM new_rows n JOIN old_rows o USING (id) WHERE n.state <> o.state
  ) AS changes GROUP BY state
  ON CONFLICT (connection, state) DO UPDATE SET count = payment_counts.count + excluded.count;
  RETURN NULL;
END $$;
CREATE TRIGGER payments_count_new AFTER INSERT ON payments REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION payments_count_new();
CREATE TRIGGER payments_count_move AFTER UPDATE ON payments REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION payments_count_move();`

/** Finds the payments that a reservation comes after. `payments_ahead` runs it. */
export const AHEAD = `
SELECT coalesce(json_agg(json_build_array(other.nonce, other.amount::text, other.valid_before::text)), '[]')::text
FROM payments AS other WHERE ${comesAfter('$1', '$2', '$3')}`

/**
 * Reservations of one payer on one network take turns until they have committed, so that each sees all before it. The
 * function is volatile: it sees what was committed while its reservation waited, and the statement itself does not.
 */
const TURNS = `
${UNSETTLED_INDEX};
CREATE FUNCTION payments_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(new.network || '/' || new.payer, 402));
  RETURN new;
END $$;
CREATE TRIGGER payments_turn BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION payments_turn();
CREATE FUNCTION payments_ahead(text, text, text) RETURNS text VOLATILE LANGUAGE plpgsql AS $$ BEGIN
  RETURN (${AHEAD});
END $$;`

/** Why a payer may not make a reservation. `payments_limit` runs it. */
export const LIMIT = `SELECT ${payerLimitSql({
  key: '$1::text',
  payer: '$2::text',
  network: '$3::text',
  amount: '$4::numeric',
  payer_code: '$5::text',
  at: '$6::bigint',
})}`

const LIMIT_FUNCTION = `
CREATE OR REPLACE FUNCTION payments_limit(text, text, text, numeric, text, bigint) RETURNS text VOLATILE LANGUAGE plpgsql AS $$ BEGIN
  RETURN (${LIMIT});
END $$;`

/** Leaves out a reservation that the limits of its payer forbid, once those before it have committed. */
const LIMITS = `${LIMIT_FUNCTION}
CREATE OR REPLACE FUNCTION payments_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(new.network || '/' || new.payer, 402));
  IF new.pays_gas = 1 AND payments_limit(new.key, new.payer, new.network, new.amount, new.payer_code, new.updated_at) IS NOT NULL THEN
    RETURN NULL;
  END IF;
  RETURN new;
END $$;`

/** Adds the counts of connections that have ended to those of connection 0. */
const FOLD_COUNTS = `
WITH ended AS (
  DELETE FROM payment_counts WHERE connection <> 0 AND connection NOT IN (SELECT pid FROM pg_stat_activity)
  RETURNING state, count)
INSERT INTO payment_counts SELECT 0, state, sum(count) FROM ended GROUP BY state
ON CONFLICT (connection, state) DO UPDATE SET count = payment_counts.count + excluded.count`

const UNIQUE_VIOLATION = '23505'

/** Advisory lock of schema changes: any number that nothing else uses. */
const SCHEMA_LOCK = 402_402_402

const changeTable = (names: readonly Column[]): string => `json_to_recordset($1::json) AS change(${typed(names)})`

// Ordered by key, so that two processes never deadlock.
const RESERVE = `
INSERT INTO payments (key, state, attempt, created_at, updated_at, ${RESERVED_COLUMNS.join(', ')})
SELECT key, 'reserved', 1, at, at, ${RESERVED_COLUMNS.join(', ')}
FROM ${changeTable(['key', 'at', ...RESERVED_COLUMNS])}
WHERE NOT EXISTS (
  SELECT 1 FROM payments AS other WHERE other.payer = change.payer AND other.identifier = change.identifier
    AND other.state <> 'released' AND other.key <> change.key)
ORDER BY key
${TAKEOVER}, payments_ahead(payments.payer, payments.network, payments.key) AS ahead`

const MOVE = `
${moveStatement('substring($2::bytea FROM change.body_start FOR change.body_length)')}
FROM ${changeTable(MOVED_COLUMNS)}
WHERE ${MAY_MOVE}`

const DELIVER_GROUP = deliverStatement(changeTable(['key', 'at']))

const STORED_BODY = 'payments.answer_body'
const COLUMNS = columns(STORED_BODY)

/** How this database reads. */
const DIALECT = {
  columns: COLUMNS,
  bareColumns: columns('NULL'),
  openColumns: columns(bodyIfSent(STORED_BODY)),
  bodyBytes: 'coalesce(octet_length(payments.answer_body), 0)',
  wanted:
    '(SELECT ordinal - 1 AS nth, value FROM json_array_elements($1::json) WITH ORDINALITY AS each(value, ordinal))',
  wantedText: "wanted.value #>> '{}'",
  wantedPart: (nth: number) => `wanted.value ->> ${nth}`,
  place: (nth: number) => `$${nth}`,
} as const

const BLOCKING = `
SELECT ${COLUMNS}, change.key AS wanted FROM ${changeTable(['key', 'payer', 'identifier'])}
JOIN payments ON payments.key = change.key
  OR (payments.payer = change.payer AND payments.identifier = change.identifier AND payments.state <> 'released')`

const READ_LIMITS = `
SELECT key, payments_limit(key, payer, network, amount, payer_code, at) AS refusal
FROM ${changeTable(LIMITED_COLUMNS)}`

/** Counts the releases that an earlier one must not work beside. A schema without a number is of the first. */
const FORMAT = 2

/**
 * Why a payment is in its state, and how its debt ended, in words that the code reads. Notes are for people.
 *
 * A process of an earlier release neither starts nor writes from then on: it finds a table of processes that takes no rows,
 * and no column `detail`.
 */
const TYPED = `
LOCK TABLE payments IN ACCESS EXCLUSIVE MODE;
CREATE TABLE payment_format (format integer NOT NULL);
INSERT INTO payment_format VALUES (${FORMAT});
ALTER TABLE payment_instances RENAME TO payment_owners;
CREATE TABLE payment_instances (instance text PRIMARY KEY, seen_at bigint NOT NULL);
CREATE FUNCTION payment_later_release() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'the journal was written by a later release (format ${FORMAT}). Update first. Nothing was changed.';
END $$;
CREATE TRIGGER payment_instances_ended BEFORE INSERT OR UPDATE OR DELETE ON payment_instances
  FOR EACH STATEMENT EXECUTE FUNCTION payment_later_release();
ALTER TABLE payments RENAME COLUMN detail TO note;
${addColumns('postgres', 'cause', 'ending')}
ALTER TABLE payment_events RENAME COLUMN detail TO note;
${addEventCause('postgres')}
ALTER TABLE payment_events DISABLE TRIGGER payment_events_stand;
${READ_OLD_WORDS}
ALTER TABLE payment_events ENABLE TRIGGER payment_events_stand;
CREATE OR REPLACE FUNCTION payment_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO payment_events (payment, attempt, state, at, cause, note)
  VALUES (new.id, new.attempt, new.state, new.updated_at, ${EVENT_CAUSE}, new.note);
  RETURN NULL;
END $$;
${UNCLEAR_INDEX}`

/** Columns that later releases added. */
const ADDED = {
  identifier: `${addColumns('postgres', 'identifier')} ${IDENTIFIER_INDEX}`,
  place: addColumns('postgres', 'place'),
  delivered_at: addColumns('postgres', 'delivered_at'),
  look_at: `${addColumns('postgres', 'look_at')}
    ALTER TABLE payments DROP CONSTRAINT payments_state_check;
    ALTER TABLE payments ADD CONSTRAINT payments_state_check CHECK
      (state IN ('reserved', 'answered', 'submitted', 'settled', 'released', 'owed', 'reversed')) NOT VALID;
    ${WATCHED_INDEXES}`,
  payer_code: addColumns('postgres', 'payer_code', 'pays_gas'),
  refetches: `${addColumns('postgres', 'refetches')} ${KEPT_INDEX}`,
  excess_gas: `${addColumns('postgres', 'excess_gas')} ${COSTLY_INDEX}
    DO $do$ BEGIN
      IF to_regprocedure('payments_limit(text, text, text, numeric, text, bigint)') IS NOT NULL THEN
        EXECUTE $sql$ ${LIMIT_FUNCTION} $sql$;
      END IF;
    END $do$;`,
  reverted_at: `${addColumns('postgres', 'reverted_at', 'burnt')} ${REVERTED_INDEXES}`,
  cause: TYPED,
} as const

/** Indexes and tables that later releases added, with what came along. */
const ADDED_RELATIONS = {
  payment_events_in_ledger: LEDGER_INDEX,
  payments_by_call: CALL_INDEX,
  payment_counts: `${LOOKUP_INDEXES}${COUNTS}`,
  payment_deliveries: `${KEPT_INDEX}${deliveriesTable('bigint')}`,
} as const

/** Functions that later releases added, with what came along. */
const ADDED_FUNCTIONS = {
  'payments_ahead(text, text, text)': TURNS,
  'payments_limit(text, text, text, numeric, text, bigint)': LIMITS,
} as const

/**
 * Opens or creates the journal in the database's current schema.
 *
 * @throws DataError if it was written by a later release
 */
export async function openPostgres(url: string): Promise<Store> {
  const pool = new Pool({ connectionString: withSynchronousCommit(url), max: 4, application_name: 'ledger' })
  // The pool replaces a connection that was lost while idle. Without a listener the error would end the process.
  pool.on('error', () => {})
  await createSchema(pool)
  const prepared = new Map(Object.entries(findQueries(DIALECT)).map(([name, sql]) => [sql, name]))
  const rows = async (text: string, values: readonly unknown[], name = prepared.get(text)): Promise<readonly Row[]> =>
    (await pool.query<Row>({ text, values: [...values], ...(name === undefined ? {} : { name }) })).rows
  const run: Run = (sql, ...values) => rows(sql, values)
  const dialect = { ...DIALECT, read: run, write: run }

  return {
    queries: createQueries(dialect),
    ...createStatements(dialect),
    async write(group: readonly Change[]) {
      const { fields, bodies } = encode(group)
      if (group[0]?.kind === 'move') return movedResults(group, await rows(MOVE, [fields, bodies], 'move'))
      if (group[0]?.kind === 'deliver') {
        await rows(DELIVER_GROUP, [fields], 'deliver')
        return deliveredResults(group)
      }
      const reserve = (): Promise<readonly Row[]> => rows(RESERVE, [fields], 'reserve')
      // Another process reserved the same identifier at this moment. It has committed by now, so a retry sees its row.
      const reserved = await reserve().catch((error: unknown) => {
        if (error instanceof DatabaseError && error.code === UNIQUE_VIOLATION) return reserve()
        throw error
      })
      return reservedResults(
        group,
        reserved,
        (wanted) => rows(BLOCKING, [wanted], 'among'),
        (wanted) => rows(READ_LIMITS, [wanted], 'limits'),
      )
    },
    // The server rolled back a statement that it reports as failed. A broken connection says nothing.
    wroteNothing: (error) => error instanceof DatabaseError && !error.code?.startsWith('57P'),
    failureOf: postgresFailure,
    close: () => pool.end(),
  }
}

/**
 * Classes of errors that are about the server, not about the statement.
 *
 * Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const SERVER_FAILURE = /^(?:08|53|57P|58|XX00[12]|25006)/
const DAMAGED = /^XX00[12]/

/** Errors that are not the server's are those of the connection, if they are no mistakes in code. */
function postgresFailure(error: unknown): StorageFailure | null {
  const { message } = error as Error
  if (error instanceof TypeError || error instanceof RangeError) return null
  if (!(error instanceof DatabaseError)) return { reason: `PostgreSQL does not answer (${message})` }
  const { code = '' } = error
  if (!SERVER_FAILURE.test(code)) return null
  return { reason: `PostgreSQL cannot write (${code}: ${message})`, ...(DAMAGED.test(code) ? { isDamaged: true } : {}) }
}

/** The same address with synchronous commits, whatever the server's default is. */
function withSynchronousCommit(url: string): string {
  const address = new URL(url)
  const options = address.searchParams.get('options')
  address.searchParams.set('options', `${options === null ? '' : `${options} `}-c synchronous_commit=on`)
  return address.href
}

async function createSchema(pool: Pool): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    // If two processes start together, one creates the tables and the other finds them.
    await client.query('SELECT pg_advisory_xact_lock($1)', [SCHEMA_LOCK])
    if (await lacksRelation(client, 'payments')) await client.query(SCHEMA)
    await assertKnownFormat(client)
    const steps = await lackingSteps(client)
    // Payments lock this table before any other. A change that does so too cannot deadlock with them.
    if (steps.length > 0) await client.query('LOCK TABLE payments IN ACCESS EXCLUSIVE MODE')
    for (const step of steps) await client.query(step)
    await client.query(FOLD_COUNTS)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

/** The changes of later releases that the schema lacks, in their order. */
async function lackingSteps(client: PoolClient): Promise<readonly string[]> {
  const steps: string[] = []
  for (const [column, step] of Object.entries(ADDED)) {
    const { rowCount } = await client.query(
      "SELECT FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'payments' AND column_name = $1",
      [column],
    )
    if (rowCount === 0) steps.push(step)
  }
  // Asked for first: CREATE INDEX IF NOT EXISTS locks its table against writers even if the index exists.
  for (const [relation, step] of Object.entries(ADDED_RELATIONS))
    if (await lacksRelation(client, relation)) steps.push(step)
  for (const [signature, step] of Object.entries(ADDED_FUNCTIONS))
    if (await lacksFunction(client, signature)) steps.push(step)
  return steps
}

async function assertKnownFormat(client: PoolClient): Promise<void> {
  if (await lacksRelation(client, 'payment_format')) return
  const [{ format } = { format: 0 }] = (await client.query<{ format: number }>('SELECT format FROM payment_format'))
    .rows
  if (format > FORMAT)
    throw new DataError(
      `The journal in PostgreSQL was written by a later release (format ${format}). Update first. Nothing was changed.`,
    )
}

async function lacksRelation(client: PoolClient, relation: string): Promise<boolean> {
  const { rows } = await client.query<{ missing: boolean }>(
    "SELECT to_regclass(quote_ident(current_schema()) || '.' || $1) IS NULL AS missing",
    [relation],
  )
  return rows[0]?.missing === true
}

async function lacksFunction(client: PoolClient, signature: string): Promise<boolean> {
  const { rows } = await client.query<{ missing: boolean }>(
    "SELECT to_regprocedure(quote_ident(current_schema()) || '.' || $1) IS NULL AS missing",
    [signature],
  )
  return rows[0]?.missing === true
}
