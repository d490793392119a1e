/**
 * The ledger in one SQLite file of its own: WAL, one fsync per group, one connection that writes and one that reads.
 * A group is one statement over json_each, so it is atomic without BEGIN and COMMIT round trips.
 */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { PaymentState } from './journal.ts'
import { type Change, encode } from './changes.ts'
import { connect, type Connection } from './connection.ts'
import { BOOKED_INDEX, entriesQuery, toEntry, totalsQuery, toTotal } from './entries.ts'
import {
  COLUMNS,
  IDENTIFIED,
  listQuery,
  OPEN,
  RESERVED_COLUMNS,
  sumsQuery,
  toEvent,
  toRecord,
  toSum,
} from './record.ts'
import { DELIVERING, FORGETTING, MAY_DELIVER, MAY_MOVE, moving, TAKEOVER } from './statements.ts'
import { moved, reserved, type Store } from './store.ts'

const SCHEMA = `
CREATE TABLE payments (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('reserved', 'answered', 'submitted', 'settled', 'released', 'owed')),
  attempt INTEGER NOT NULL CHECK (attempt > 0),
  fingerprint TEXT NOT NULL, operation TEXT NOT NULL, route TEXT NOT NULL,
  network TEXT NOT NULL, asset TEXT NOT NULL, payer TEXT NOT NULL, pay_to TEXT NOT NULL, amount TEXT NOT NULL,
  nonce TEXT NOT NULL, valid_after TEXT NOT NULL, valid_before TEXT NOT NULL, signature TEXT NOT NULL,
  version INTEGER NOT NULL, price_version TEXT NOT NULL, call_id TEXT NOT NULL, owner TEXT NOT NULL,
  intent TEXT, transaction_hash TEXT, reason TEXT, detail TEXT,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, settled_at INTEGER, repaid_at INTEGER,
  answer_status INTEGER, answer_headers TEXT, answer_body BLOB
) STRICT;
CREATE INDEX payments_by_state ON payments (state);
CREATE INDEX payments_by_payer ON payments (lower(payer), id);
CREATE INDEX payments_open ON payments (id) WHERE ${OPEN};
CREATE INDEX payments_kept ON payments (settled_at) WHERE answer_body IS NOT NULL AND state = 'settled';

CREATE TABLE payment_events (
  id INTEGER PRIMARY KEY,
  payment INTEGER NOT NULL REFERENCES payments (id),
  attempt INTEGER NOT NULL, state TEXT NOT NULL, at INTEGER NOT NULL, detail TEXT
) STRICT;
CREATE INDEX payment_events_by_payment ON payment_events (payment);
CREATE TABLE payment_instances (instance TEXT PRIMARY KEY, seen_at INTEGER NOT NULL) STRICT;

CREATE TRIGGER payments_begin AFTER INSERT ON payments BEGIN
  INSERT INTO payment_events (payment, attempt, state, at, detail)
  VALUES (new.id, new.attempt, new.state, new.updated_at, new.detail);
END;
CREATE TRIGGER payments_move AFTER UPDATE OF state ON payments BEGIN
  INSERT INTO payment_events (payment, attempt, state, at, detail)
  VALUES (new.id, new.attempt, new.state, new.updated_at, new.detail);
END;
CREATE TRIGGER payments_stay BEFORE DELETE ON payments BEGIN
  SELECT raise(ABORT, 'a payment is never deleted');
END;
CREATE TRIGGER payment_events_stand BEFORE UPDATE ON payment_events BEGIN
  SELECT raise(ABORT, 'payment_events is append-only');
END;
CREATE TRIGGER payment_events_stay BEFORE DELETE ON payment_events BEGIN
  SELECT raise(ABORT, 'payment_events is append-only');
END;`

/** What each release added to the file, in order; the first made it. */
const STEPS = [
  SCHEMA,
  `ALTER TABLE payments ADD COLUMN identifier TEXT; ${IDENTIFIED};`,
  BOOKED_INDEX,
  'ALTER TABLE payments ADD COLUMN place TEXT; ALTER TABLE payments ADD COLUMN delivered_at INTEGER;',
] as const
const VERSION = STEPS.length

const field = (column: string): string => `value ->> '${column}'`

const RESERVE = `
INSERT INTO payments (key, state, attempt, created_at, updated_at, ${RESERVED_COLUMNS.join(', ')})
SELECT ${field('key')}, 'reserved', 1, ${field('at')}, ${field('at')}, ${RESERVED_COLUMNS.map(field).join(', ')}
FROM json_each(?) WHERE NOT EXISTS (
  SELECT 1 FROM payments AS other WHERE other.payer = ${field('payer')} AND other.identifier = ${field('identifier')}
    AND other.state <> 'released' AND other.key <> ${field('key')})
${TAKEOVER}`

const MOVED_COLUMNS = `key attempt state allowed owned at owner detail intent transaction_hash reason
  answer_status answer_headers body_start body_length`.split(/\s+/)

const MOVE = `
${moving('coalesce(substr(?2, change.body_start, change.body_length), zeroblob(0))')}
FROM (SELECT ${MOVED_COLUMNS.map((column) => `${field(column)} AS ${column}`).join(', ')} FROM json_each(?1)) AS change
WHERE ${MAY_MOVE}`

const DELIVER = `
${DELIVERING} FROM (SELECT ${field('key')} AS key, ${field('at')} AS at FROM json_each(?)) AS change
WHERE ${MAY_DELIVER}`

const AMONG = `
SELECT payments.*, ${field('key')} AS wanted FROM json_each(?) CROSS JOIN payments
ON payments.key = ${field('key')}
  OR (payments.payer = ${field('payer')} AND payments.identifier = ${field('identifier')} AND payments.state <> 'released')`

const CLAIM = `
UPDATE payments SET owner = ?1, updated_at = ?2 WHERE key = ?3 AND attempt = ?4 AND state = 'submitted' RETURNING key`

const REPAID = `
UPDATE payments SET state = 'owed', repaid_at = ?1, updated_at = ?1, detail = ?2
WHERE key = ?3 AND state = 'owed' AND repaid_at IS NULL RETURNING key`

const FORGET = `
${FORGETTING} WHERE id IN (
  SELECT id FROM payments WHERE answer_body IS NOT NULL AND state = 'settled' AND settled_at < ? LIMIT ?
) RETURNING id`

/** Opens or creates the ledger; ":memory:" keeps it in this process. Throws where the file is of a later release. */
export async function openSqlite(file: string): Promise<Store> {
  const inMemory = file === ':memory:'
  if (!inMemory) mkdirSync(dirname(file), { recursive: true })
  const writer = await connect(file, 'write')
  await writer.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
  await tune(writer)
  await createSchema(writer, file)
  const reader = inMemory ? writer : await connect(file, 'read')
  if (!inMemory) await tune(reader)

  const reserve = await writer.prepare(RESERVE)
  const move = await writer.prepare(MOVE)
  const deliver = await writer.prepare(DELIVER)
  const among = await writer.prepare(AMONG)
  const find = await reader.prepare(`SELECT ${COLUMNS} FROM payments WHERE key = ?`)
  const identified = await reader.prepare(
    `SELECT ${COLUMNS} FROM payments WHERE payer = ? AND identifier = ? AND state <> 'released'`,
  )

  return {
    async write(group: readonly Change[]) {
      const { fields, bodies } = encode(group)
      if (group[0]?.kind === 'move') return moved(group, await move(fields, bodies))
      if (group[0]?.kind === 'deliver') return moved(group, await deliver(fields))
      return reserved(group, await reserve(fields), among)
    },
    // After a failed write or sync nobody knows what reached the disk.
    wroteNothing: (error) => (error as NodeJS.ErrnoException).code !== 'SQLITE_IOERR',
    claim: async (key, attempt, owner, at) => (await writer.once(CLAIM, owner, at, key, attempt)).length === 1,
    repaid: async (key, note, at) => (await writer.once(REPAID, at, note, key)).length === 1,
    forget: async (settledBefore, limit) => (await writer.once(FORGET, settledBefore, limit)).length,
    find: async (key) => (await find(key)).map(toRecord)[0] ?? null,
    identified: async (payer, identifier) => (await identified(payer, identifier)).map(toRecord)[0] ?? null,
    open: async () => (await reader.once(`SELECT ${COLUMNS} FROM payments WHERE ${OPEN} ORDER BY id`)).map(toRecord),
    async list(filter) {
      const { sql, values } = listQuery(filter, () => '?')
      return (await reader.once(sql, ...values)).map(toRecord)
    },
    async sums(settledSince, own) {
      // Numbered, so that the order in which they stand does not matter.
      const { sql, values } = sumsQuery(settledSince, own, (nth) => `?${nth}`)
      return (await reader.once(sql, ...values)).map(toSum)
    },
    debts: async () =>
      (
        await reader.once(
          `SELECT ${COLUMNS} FROM payments WHERE state = 'owed' AND repaid_at IS NULL ORDER BY updated_at, id`,
        )
      ).map(toRecord),
    async counts() {
      const rows = await reader.once('SELECT state, count(*) AS count FROM payments GROUP BY state')
      return rows.map(({ state, count }) => ({ state: state as PaymentState, count: Number(count) }))
    },
    events: async (key) =>
      (
        await reader.once(
          `SELECT e.at, e.attempt, e.state, e.detail FROM payment_events e JOIN payments p ON p.id = e.payment
           WHERE p.key = ? ORDER BY e.id`,
          key,
        )
      ).map(toEvent),
    async entries(window) {
      const { sql, values } = entriesQuery(window, () => '?')
      return (await reader.once(sql, ...values)).map(toEntry)
    },
    async totals(window, own) {
      const { sql, values } = totalsQuery(window, own, (nth) => `?${nth}`)
      return (await reader.once(sql, ...values)).map(toTotal)
    },
    async touch(instance, at, forgetBefore) {
      await writer.once('DELETE FROM payment_instances WHERE seen_at < ?', forgetBefore)
      await writer.once(
        `INSERT INTO payment_instances VALUES (?, ?) ON CONFLICT (instance) DO UPDATE SET seen_at = excluded.seen_at`,
        instance,
        at,
      )
    },
    async leave(instance) {
      await writer.once('DELETE FROM payment_instances WHERE instance = ?', instance)
    },
    seenSince: async (at) =>
      (await reader.once('SELECT instance FROM payment_instances WHERE seen_at >= ?', at)).map((row) =>
        String(row['instance']),
      ),
    async close() {
      if (reader !== writer) await reader.close()
      await writer.close()
    },
  }
}

async function tune(connection: Connection): Promise<void> {
  await connection.exec('PRAGMA cache_size = -32768; PRAGMA mmap_size = 268435456;')
}

async function createSchema(writer: Connection, file: string): Promise<void> {
  // Immediate: of two processes that start together one creates the tables and the other finds them.
  await writer.exec('BEGIN IMMEDIATE')
  try {
    const found = Number((await writer.once('PRAGMA user_version'))[0]?.['user_version'])
    if (found > VERSION) throw new Error(`${file} was written by a later release (format ${found}); update first`)
    for (const step of STEPS.slice(found)) await writer.exec(step)
    if (found < VERSION) await writer.exec(`PRAGMA user_version = ${VERSION}`)
    await writer.exec('COMMIT')
  } catch (error) {
    await writer.exec('ROLLBACK')
    throw error
  }
}
