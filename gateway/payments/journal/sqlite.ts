/**
 * The journal in one SQLite file of its own: WAL, one fsync per group, one connection that writes and one that reads.
 * A group is one statement over jsonb_each, so it is atomic without round trips for BEGIN and COMMIT. (json_each would
 * write each row as text, which ->> would parse again for every column.)
 */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { LRUCache } from 'lru-cache'
import { DataError } from '../../stores/data-error.ts'
import { makePrivateFile } from '../../stores/private-files.ts'
import { addColumns, addEventCause, createTables, MOVED_COLUMNS, RESERVED_COLUMNS } from './columns.ts'
import { LEDGER_INDEX } from './ledger-sql.ts'
import { READ_OLD_WORDS } from './read-old-words.ts'
import { AnswerBody } from '../../plugin/answer-body.ts'
import { packAnswer } from './packed-answers.ts'
import { COSTLY_INDEX, payerLimitSql, REVERTED_INDEXES } from './payer-limits.ts'
import { createQueries, createStatements, findQueries } from './queries.ts'
import { connect, type Connection, type Statement } from './sqlite-connection.ts'
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
${createTables('sqlite')}
CREATE INDEX payments_by_state ON payments (state);
CREATE INDEX payments_by_payer ON payments (lower(payer), id);
CREATE INDEX payments_open ON payments (id) WHERE ${OPEN};
CREATE INDEX payments_kept ON payments (settled_at) WHERE answer_body IS NOT NULL AND state = 'settled';
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

/** The number of payments in each state, kept by the statement that moves them. */
const COUNTS = `
CREATE TABLE payment_counts (state TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT;
INSERT INTO payment_counts SELECT state, count(*) FROM payments GROUP BY state;
CREATE TRIGGER payments_count_new AFTER INSERT ON payments BEGIN
  INSERT INTO payment_counts VALUES (new.state, 1) ON CONFLICT (state) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER payments_count_move AFTER UPDATE OF state ON payments WHEN old.state <> new.state BEGIN
  UPDATE payment_counts SET count = count - 1 WHERE state = old.state;
  INSERT INTO payment_counts VALUES (new.state, 1) ON CONFLICT (state) DO UPDATE SET count = count + 1;
END;`

const UNUSED = 'NOT EXISTS (SELECT 1 FROM payment_answers WHERE digest = old.digest)'

/**
 * Long answers, and deliveries. SQLite writes a whole row again with every change of it, so a long answer has a row of its
 * own, which is written once, also if several payments bought the same bytes. It goes with the last of them.
 */
const APART = `${KEPT_INDEX} ${deliveriesTable('INTEGER')} WITHOUT ROWID, STRICT;
CREATE TABLE answer_bodies (digest BLOB PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE payment_answers (payment INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE INDEX payment_answers_by_digest ON payment_answers (digest);
CREATE TRIGGER payments_forget AFTER UPDATE OF answer_headers ON payments
WHEN new.answer_headers IS NULL AND new.state IN ('released', 'settled') BEGIN
  DELETE FROM payment_answers WHERE payment = new.id;
END;
CREATE TRIGGER payment_answers_forget AFTER DELETE ON payment_answers WHEN ${UNUSED} BEGIN
  DELETE FROM answer_bodies WHERE digest = old.digest;
END;
CREATE TRIGGER payment_answers_change AFTER UPDATE OF digest ON payment_answers WHEN ${UNUSED} BEGIN
  DELETE FROM answer_bodies WHERE digest = old.digest;
END;`

/** Leaves out a reservation that the limits of its payer forbid. */
const LIMIT_TRIGGER = `CREATE TRIGGER payments_limit BEFORE INSERT ON payments
WHEN new.pays_gas = 1 AND ${payerLimitSql({
  key: 'new.key',
  payer: 'new.payer',
  network: 'new.network',
  amount: 'new.amount',
  payer_code: 'new.payer_code',
  at: 'new.updated_at',
})} IS NOT NULL BEGIN
  SELECT raise(IGNORE);
END;`

/** Checks a reservation against the limits of its payer. A row that they forbid is left out. */
const LIMITS = `
${addColumns('sqlite', 'payer_code', 'pays_gas', 'reverted_at', 'burnt')}
${REVERTED_INDEXES}
${LIMIT_TRIGGER}`

/** How many queries stay prepared. Only those with lists of operations have more forms than this. */
const MAX_PREPARED = 32

/** How many long answers a process remembers to have stored. */
const MAX_KNOWN = 1_000

/** Longer answers, in bytes, have a row of their own. */
const MAX_BODY_IN_ROW = 2_000

/**
 * The state `reversed`, and when a payment is looked at next. SQLite cannot change the CHECK of a table except by writing
 * the schema (lang_altertable, section 7), which is right here because no row breaks the wider CHECK.
 */
const REVERSALS = `${addColumns('sqlite', 'look_at')}
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''released'', ''owed'')', '''released'', ''owed'', ''reversed'')')
WHERE type = 'table' AND name = 'payments';
PRAGMA writable_schema = RESET;
${WATCHED_INDEXES}`

/** Answers of payments that are owed or reversed are deleted like those of settled ones. */
const FORGET_ALL = `${KEPT_INDEX}
${addColumns('sqlite', 'refetches')}
DROP TRIGGER payments_forget;
CREATE TRIGGER payments_forget AFTER UPDATE OF answer_headers ON payments
WHEN new.answer_headers IS NULL AND new.state IN ('released', 'settled', 'owed', 'reversed') BEGIN
  DELETE FROM payment_answers WHERE payment = new.id;
END;`

/** The gas of settlements that succeeded is one of the limits. */
const COSTLY = `
DROP TRIGGER payments_limit;
${addColumns('sqlite', 'excess_gas')}
${COSTLY_INDEX}
${LIMIT_TRIGGER}`

/** Long answers are deflated. This is how many bytes one has then; null if it is stored as it is. */
const DEFLATED = 'ALTER TABLE answer_bodies ADD COLUMN length INTEGER;'

const EVENT = `
  INSERT INTO payment_events (payment, attempt, state, at, cause, note)
  VALUES (new.id, new.attempt, new.state, new.updated_at, ${EVENT_CAUSE}, new.note);
END;`

/** Why a payment is in its state, and how its debt ended, in words that the code reads. Notes are for people. */
const TYPED = `
ALTER TABLE payment_instances RENAME TO payment_owners;
ALTER TABLE payments RENAME COLUMN detail TO note;
${addColumns('sqlite', 'cause', 'ending')}
DROP TRIGGER payments_begin;
DROP TRIGGER payments_move;
DROP TRIGGER payment_events_stand;
ALTER TABLE payment_events RENAME COLUMN detail TO note;
${addEventCause('sqlite')}
${READ_OLD_WORDS}
CREATE TRIGGER payments_begin AFTER INSERT ON payments BEGIN ${EVENT}
CREATE TRIGGER payments_move AFTER UPDATE OF state ON payments BEGIN ${EVENT}
CREATE TRIGGER payment_events_stand BEFORE UPDATE ON payment_events BEGIN
  SELECT raise(ABORT, 'payment_events is append-only');
END;
${UNCLEAR_INDEX}`

/** The changes of each release to the file, in order. The first created it. */
const STEPS = [
  SCHEMA,
  `${addColumns('sqlite', 'identifier')} ${IDENTIFIER_INDEX};`,
  '', // An index of the ledger, which the last step replaces.
  addColumns('sqlite', 'place', 'delivered_at'),
  LOOKUP_INDEXES + COUNTS,
  UNSETTLED_INDEX,
  APART,
  REVERSALS + LEDGER_INDEX,
  LIMITS,
  FORGET_ALL,
  COSTLY,
  DEFLATED,
  CALL_INDEX,
  TYPED,
] as const
const VERSION = STEPS.length

const field = (column: string): string => `value ->> '${column}'`

const RESERVE = `
INSERT INTO payments (key, state, attempt, created_at, updated_at, ${RESERVED_COLUMNS.join(', ')})
SELECT ${field('key')}, 'reserved', 1, ${field('at')}, ${field('at')}, ${RESERVED_COLUMNS.map(field).join(', ')}
FROM jsonb_each(?) WHERE NOT EXISTS (
  SELECT 1 FROM payments AS other WHERE other.payer = ${field('payer')} AND other.identifier = ${field('identifier')}
    AND other.state <> 'released' AND other.key <> ${field('key')})
${TAKEOVER}, (
  SELECT json_group_array(json_array(other.nonce, other.amount, other.valid_before)) FROM payments AS other
  WHERE ${comesAfter('payments.payer', 'payments.network', 'payments.key')}) AS ahead`

const changeTable = (names: readonly string[]): string =>
  `(SELECT ${names.map((column) => `${field(column)} AS ${column}`).join(', ')} FROM jsonb_each(?1)) AS change`

const BODY = 'coalesce(substr(?2, change.body_start, change.body_length), zeroblob(0))'

/** The stored part of the long answer of a payment's attempt. */
const longAnswer = (column: string, payment: string, attempt: string): string => `
  SELECT ${column} FROM payment_answers a JOIN answer_bodies b ON b.digest = a.digest
  WHERE a.payment = ${payment} AND a.attempt = ${attempt}`

const MOVE = `
${moveStatement(`CASE WHEN change.apart IS NULL THEN ${BODY} END`)}
FROM ${changeTable([...MOVED_COLUMNS, 'apart'])}
WHERE (change.apart IS NULL OR EXISTS (${longAnswer('1', 'payments.id', 'change.attempt')})) AND ${MAY_MOVE}`

/**
 * Records which long answers belong to payments, and returns whether the bytes of each are stored. From then on they cannot
 * be deleted.
 */
const NOTE_ANSWERS = `
INSERT INTO payment_answers (payment, attempt, digest)
SELECT payments.id, payments.attempt, unhex(${field('digest')}) FROM jsonb_each(?1) AS change CROSS JOIN payments
WHERE payments.key = ${field('key')} AND payments.attempt = ${field('attempt')} AND payments.state = 'reserved'
ON CONFLICT (payment) DO UPDATE SET attempt = excluded.attempt, digest = excluded.digest
RETURNING hex(digest) AS digest, EXISTS (SELECT 1 FROM answer_bodies b WHERE b.digest = payment_answers.digest) AS stored`

/**
 * A row inserted here stores a long answer and records whose it is, as NOTE_ANSWERS does, so that one statement does both. Only
 * this connection has the view.
 */
const LONG_ANSWERS = `
CREATE TEMP VIEW long_answers AS SELECT NULL AS key, NULL AS attempt, NULL AS digest, NULL AS body, NULL AS length;
CREATE TEMP TRIGGER long_answers_add INSTEAD OF INSERT ON long_answers BEGIN
  INSERT INTO payment_answers (payment, attempt, digest)
  SELECT id, attempt, new.digest FROM payments WHERE key = new.key AND attempt = new.attempt AND state = 'reserved'
  ON CONFLICT (payment) DO UPDATE SET attempt = excluded.attempt, digest = excluded.digest;
  INSERT INTO answer_bodies (digest, body, length) SELECT new.digest, new.body, new.length
  WHERE EXISTS (SELECT 1 FROM payment_answers WHERE digest = new.digest) ON CONFLICT DO NOTHING;
END;`

const ADD_ANSWERS = `
INSERT INTO long_answers (key, attempt, digest, body, length)
SELECT ${field('key')}, ${field('attempt')}, unhex(${field('digest')}),
  substr(?2, ${field('body_start')}, ${field('body_length')}), ${field('length')} FROM jsonb_each(?1)`

const DELIVER_GROUP = deliverStatement(changeTable(['key', 'at']))

const ofPayment = (column: string): string => longAnswer(column, 'payments.id', 'payments.attempt')
const STORED_BODY = `coalesce(payments.answer_body, (${ofPayment('b.body')}))`
const withBody = (body: string): string => `${columns(body)}, (${ofPayment('b.length')}) AS answer_length`
const COLUMNS = withBody(STORED_BODY)

/** How this database reads. `wanted.value` of an array within the array is JSONB. */
const DIALECT = {
  columns: COLUMNS,
  bareColumns: columns('NULL'),
  openColumns: withBody(bodyIfSent(STORED_BODY)),
  bodyBytes: `coalesce(length(payments.answer_body), (${ofPayment('coalesce(b.length, length(b.body))')}), 0)`,
  wanted: '(SELECT key AS nth, value FROM jsonb_each(?1))',
  wantedText: 'wanted.value',
  wantedPart: (nth: number) => `wanted.value ->> ${nth}`,
  place: (nth: number) => `?${nth}`,
} as const

const BLOCKING = `
SELECT ${COLUMNS}, ${field('key')} AS wanted FROM jsonb_each(?) AS change CROSS JOIN payments
ON payments.key = ${field('key')}
  OR (payments.payer = ${field('payer')} AND payments.identifier = ${field('identifier')} AND payments.state <> 'released')`

const READ_LIMITS = `
SELECT ${field('key')} AS key, ${payerLimitSql({
  key: field('key'),
  payer: field('payer'),
  network: field('network'),
  amount: field('amount'),
  payer_code: field('payer_code'),
  at: field('at'),
})} AS refusal FROM jsonb_each(?)`

/**
 * Opens or creates the journal; ":memory:" keeps it in this process.
 *
 * @throws DataError if the file was written by a later release
 */
export async function openSqlite(file: string): Promise<Store> {
  const inMemory = file === ':memory:'
  if (!inMemory) makePrivateFile(file)
  const writer = await connect(file, 'write')
  await writer.exec('PRAGMA synchronous = FULL;')
  await tune(writer)
  await createSchema(writer, file)
  const reader = inMemory ? writer : await connect(file, 'read')
  if (!inMemory) await tune(reader)
  // Long answers are not synced to the disk by themselves: the sync of the change that comes after them does it, because
  // both append to one log, which is valid up to the last change that is whole.
  const answers = inMemory ? writer : await connect(file, 'write')
  if (!inMemory) {
    await tune(answers)
    await answers.exec('PRAGMA synchronous = NORMAL;')
  }

  const reserve = await writer.prepare(RESERVE)
  const move = await writer.prepare(MOVE)
  const deliver = await writer.prepare(DELIVER_GROUP)
  const noteAnswers = await answers.prepare(NOTE_ANSWERS)
  await answers.exec(LONG_ANSWERS)
  const addAnswers = await answers.prepare(ADD_ANSWERS)
  /** Digests of long answers that were stored a while ago, by hexadecimal digits. They may have been deleted since. */
  const known = new LRUCache<string, true>({ max: MAX_KNOWN })
  const readBlocking = await writer.prepare(BLOCKING)
  const readLimits = await writer.prepare(READ_LIMITS)
  const prepared = new Map<string, Promise<Statement>>()
  function prepare(sql: string): Promise<Statement> {
    const statement = reader.prepare(sql)
    prepared.set(sql, statement)
    statement.catch(() => prepared.delete(sql))
    return statement
  }
  for (const sql of Object.values(findQueries(DIALECT))) await prepare(sql)
  /** Stores long answers. It runs before MOVE, which moves no payment whose long answer is not stored. */
  async function storeLong(changes: readonly Change[]): Promise<void> {
    const answered = changes.map(({ key, body, fields: { attempt = 0 } }) => ({
      row: { key, attempt, digest: body.digest.toString('hex') },
      body,
    }))
    const isKnown = ({ row }: { readonly row: { readonly digest: string } }): boolean => known.has(row.digest)
    const noted = answered.filter(isKnown).map(({ row }) => row)
    const found = noted.length > 0 ? await noteAnswers(JSON.stringify(noted)) : []
    for (const { digest, stored } of found) if (stored === 0) known.delete(String(digest).toLowerCase())
    const added = answered.filter((one) => !isKnown(one))
    if (added.length === 0) return
    const bodies = new Map(added.map(({ row, body }) => [row.digest, body]))
    const places = new Map<string, object>()
    const parts: Buffer[] = []
    let start = 1
    for (const [digest, answer] of bodies) {
      const { body, length } = await packAnswer(answer)
      places.set(digest, { body_start: start, body_length: body.length, length })
      parts.push(body)
      start += body.length
    }
    await addAnswers(
      JSON.stringify(added.map(({ row }) => ({ ...row, ...places.get(row.digest) }))),
      Buffer.concat(parts),
    )
    for (const digest of bodies.keys()) known.set(digest, true)
  }
  const read: Connection['run'] = async (sql, ...values) => {
    const statement = prepared.get(sql) ?? (prepared.size < MAX_PREPARED ? prepare(sql) : null)
    return statement === null ? reader.run(sql, ...values) : (await statement)(...values)
  }
  const dialect = { ...DIALECT, read, write: writer.run }

  return {
    queries: createQueries(dialect),
    ...createStatements(dialect),
    async write(group: readonly Change[]) {
      if (group[0]?.kind === 'move') {
        await storeLong(group.filter(isLong))
        const { fields, bodies } = encode(group.map((change) => (isLong(change) ? apart(change) : change)))
        return movedResults(group, await move(fields, bodies))
      }
      const { fields } = encode(group)
      if (group[0]?.kind === 'deliver') {
        await deliver(fields)
        return deliveredResults(group)
      }
      return reservedResults(group, await reserve(fields), readBlocking, readLimits)
    },
    // After a failed write or sync it is unknown what reached the disk. A full disk is noticed before a change is whole.
    wroteNothing: (error) => (error as NodeJS.ErrnoException).code !== 'SQLITE_IOERR',
    failureOf: (error) => sqliteFailure(file, error),
    async close() {
      if (reader !== writer) await reader.close()
      if (answers !== writer) await answers.close()
      await writer.close()
    },
  }
}

/**
 * Codes of SQLite that are about the disk or the file, not about the statement.
 *
 * Source: https://www.sqlite.org/rescode.html
 */
const FAILURES: Readonly<Record<string, string>> = {
  SQLITE_FULL: 'the disk is full',
  SQLITE_IOERR: 'the disk reports an error',
  SQLITE_READONLY: 'the disk or the file is read-only',
  SQLITE_CANTOPEN: 'the file cannot be opened',
  SQLITE_BUSY: 'another process has locked the file',
  SQLITE_CORRUPT: 'the file is damaged: stop the gateway and restore the last backup',
  SQLITE_NOTADB: 'the file is damaged: stop the gateway and restore the last backup',
}

function sqliteFailure(file: string, error: unknown): StorageFailure | null {
  const { code = '', message } = error as NodeJS.ErrnoException
  const problem = FAILURES[code]
  if (problem === undefined) return null
  const isDamaged = code === 'SQLITE_CORRUPT' || code === 'SQLITE_NOTADB'
  return { reason: `${file}: ${problem} (${message})`, ...(isDamaged ? { isDamaged } : {}) }
}

function isLong({ body }: Change): boolean {
  return body.length > MAX_BODY_IN_ROW
}

/** The change without its body, which is stored apart. */
function apart(change: Change): Change {
  return { ...change, fields: { ...change.fields, apart: 1 }, body: AnswerBody.empty }
}

/**
 * How many pages the log may have before they are written to the file. Payments in progress change the same pages several
 * times, and each page is written to the file once.
 */
const LOG_PAGES = 4_000

/**
 * The file is not mapped into memory (mmap_size): once another connection has written, which is before nearly every read,
 * SQLite unmaps all of it, and each page that is read then costs a page fault.
 */
async function tune(connection: Connection): Promise<void> {
  await connection.exec(`PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = ${LOG_PAGES};`)
}

/** The statements of the whole schema, once this process has made a file by every step. They make the next one sooner. */
let wholeSchema: string | null = null

async function createSchema(writer: Connection, file: string): Promise<void> {
  // Immediate: of two processes that start together one creates the tables and the other finds them.
  await writer.exec('BEGIN IMMEDIATE')
  try {
    const found = Number((await writer.run('PRAGMA user_version'))[0]?.['user_version'])
    if (found > VERSION)
      throw new DataError(
        `${file} was written by a later release (format ${found}). Update first. Nothing was changed.`,
      )
    if (found > 0 && found < VERSION && file !== ':memory:') await keepCopy(file, found)
    const steps = found === 0 && wholeSchema !== null ? [wholeSchema] : STEPS.slice(found)
    for (const step of steps) await writer.exec(step)
    if (found < VERSION) await writer.exec(`PRAGMA user_version = ${VERSION}`)
    if (found === 0) wholeSchema ??= await schemaOf(writer)
    await writer.exec('COMMIT')
  } catch (error) {
    await writer.exec('ROLLBACK')
    throw error
  }
}

/**
 * Keeps the file as an earlier release wrote it, beside it. The caller holds the lock of the file, so nothing is written
 * meanwhile. A copy becomes a file of this name once it is whole.
 */
async function keepCopy(file: string, format: number): Promise<void> {
  const copy = `${file}.format-${format}`
  if (existsSync(copy)) return
  const unfinished = `${copy}.unfinished`
  // A process may have stopped before its copy was whole.
  rmSync(unfinished, { force: true })
  makePrivateFile(unfinished)
  const reader = await connect(file, 'read')
  try {
    await reader.run('VACUUM INTO ?', unfinished)
    // SQLite does not (lang_vacuum).
    const fd = openSync(unfinished, 'r')
    fsyncSync(fd)
    closeSync(fd)
    renameSync(unfinished, copy)
  } finally {
    await reader.close()
    rmSync(unfinished, { force: true })
  }
}

async function schemaOf(connection: Connection): Promise<string> {
  const objects = await connection.run('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid')
  return objects.map(({ sql }) => `${String(sql)};`).join('\n')
}
