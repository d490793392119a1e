/**
 * The results of reconciliation in SQL: one row per transfer, or per payment without a transfer, their number, and the
 * blocks read.
 */
import type { Knex } from 'knex'
import type { Hex } from '../../config/networks.ts'
import { isPostgres } from '../../plugin/database.ts'
import { migrate, type Step } from '../../stores/migrations.ts'
import { ALARMING, type Bucket } from './buckets.ts'

export interface Row {
  /** "<transaction>/<log index>", or the key of a payment. */
  readonly id: string
  readonly bucket: Bucket
  readonly note: string
  /** CAIP-2. Empty in rows written when only one network was supported. */
  readonly network: string
  readonly transaction: Hex | null
  readonly block: number | null
  readonly payer: Hex
  /** The amount that was transferred or should have been, in atomic units. Null if it cannot be read. */
  readonly amount: bigint | null
  /** Key of the payment in the journal. */
  readonly payment: string | null
  /** Paid by one of the operator's own wallets. */
  readonly isOwn: boolean
  /** The account that sent the transaction; null if it is unknown, as in rows of earlier releases. */
  readonly sender: Hex | null
  /** An authorization that another gateway or a stranger sent. */
  readonly isForeign: boolean
  /** Milliseconds since the epoch. */
  readonly at: number
}

interface StoredRow {
  readonly id: string
  readonly bucket: Bucket
  readonly note: string
  readonly network: string
  readonly transaction_hash: Hex | null
  readonly block: number | null
  readonly payer: Hex
  readonly amount: string | null
  readonly payment: string | null
  readonly own: number
  readonly sender: Hex | null
  readonly is_foreign: number
  readonly at: number
  readonly alerted: number
}

/** How far the transfers of one token to one wallet were read. */
export interface Cursor {
  readonly id: string
  /** The next block to read. */
  readonly block: number
  /** Payments settled before this time (ms) were judged, or are older than the first block read. */
  readonly judged: number
}

/** Blocks of one network, both ends included. */
export interface ReadRange {
  readonly network: string
  readonly from: number
  readonly to: number
}

const TABLE = 'reconciled_rows'
const CURSORS = 'reconciled_to'
const COUNTS = 'reconciled_counts'

const counted = (place: string, change: string): string =>
  `INSERT INTO ${COUNTS} ${place} ON CONFLICT (network, bucket) DO UPDATE SET count = ${COUNTS}.count ${change};`

/** No row ever changes its network. */
const SQLITE_COUNTING = [
  `CREATE TRIGGER reconciled_count_new AFTER INSERT ON ${TABLE} BEGIN
    ${counted('VALUES (new.network, new.bucket, 1)', '+ 1')} END`,
  `CREATE TRIGGER reconciled_count_gone AFTER DELETE ON ${TABLE} BEGIN
    ${counted('VALUES (old.network, old.bucket, -1)', '- 1')} END`,
  `CREATE TRIGGER reconciled_count_moved AFTER UPDATE OF bucket ON ${TABLE} WHEN old.bucket <> new.bucket BEGIN
    ${counted('VALUES (old.network, old.bucket, -1)', '- 1')}
    ${counted('VALUES (new.network, new.bucket, 1)', '+ 1')} END`,
] as const

const newRows = counted('SELECT network, bucket, count(*) FROM new_rows GROUP BY 1, 2', '+ excluded.count')
const oldRows = counted('SELECT network, bucket, -count(*) FROM old_rows GROUP BY 1, 2', '+ excluded.count')
const onStatement = (change: string, name: string, tables: string, body: string): readonly string[] => [
  `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NULL; END $$`,
  `CREATE TRIGGER ${name} AFTER ${change} ON ${TABLE} REFERENCING ${tables} FOR EACH STATEMENT EXECUTE FUNCTION ${name}()`,
]
const POSTGRES_COUNTING = [
  ...onStatement('INSERT', 'reconciled_count_new', 'NEW TABLE AS new_rows', newRows),
  ...onStatement('DELETE', 'reconciled_count_gone', 'OLD TABLE AS old_rows', oldRows),
  ...onStatement(
    'UPDATE',
    'reconciled_count_moved',
    'OLD TABLE AS old_rows NEW TABLE AS new_rows',
    `${oldRows} ${newRows}`,
  ),
] as const

const STEPS: readonly Step[] = [
  async (db) => {
    await db.schema.createTable(TABLE, (table) => {
      table.text('id').primary()
      table.text('bucket').notNullable()
      table.text('note').notNullable()
      table.text('transaction_hash')
      table.bigInteger('block')
      table.text('payer').notNullable()
      table.text('amount')
      table.text('payment')
      table.integer('own').notNullable()
      table.bigInteger('at').notNullable()
      table.integer('alerted').notNullable().defaultTo(0)
      table.index(['bucket', 'at'])
      table.index(['payment'])
    })
    await db.schema.createTable(CURSORS, (table) => {
      table.text('id').primary()
      table.bigInteger('block').notNullable()
      table.bigInteger('judged').notNullable()
    })
  },
  (db) => db.schema.alterTable(TABLE, (table) => table.text('network').notNullable().defaultTo('')),
  (db) =>
    db.schema.alterTable(TABLE, (table) => {
      table.text('sender')
      table.integer('is_foreign').notNullable().defaultTo(0)
      table.index(['is_foreign', 'at'])
      table.index(['block'])
    }),
  // A year has ten million rows or more, so their number is kept, and not counted at every run.
  async (db) => {
    await db.schema.createTable(COUNTS, (table) => {
      table.text('network').notNullable()
      table.text('bucket').notNullable()
      table.bigInteger('count').notNullable()
      table.primary(['network', 'bucket'])
    })
    // Afterwards no other process can write before the end of this step, so that no row is missed.
    for (const statement of isPostgres(db) ? POSTGRES_COUNTING : SQLITE_COUNTING) await db.raw(statement)
    await db.raw(`INSERT INTO ${COUNTS} SELECT network, bucket, count(*) FROM ${TABLE} GROUP BY 1, 2`)
  },
]

const ROWS_PER_INSERT = 50
/** The columns that a row takes over when it is written again. */
const MERGED = ['bucket', 'note', 'block', 'amount', 'payment', 'own', 'sender', 'is_foreign'] as const
/** A row that was only unreadable has not been alerted for what it turns out to be. */
const STILL_ALERTED = `case when ${TABLE}.bucket = 'unreadable' and excluded.bucket <> 'unreadable' then 0 else ${TABLE}.alerted end`
const KEYS_PER_QUERY = 500

/** Opens the tables of reconciliation and migrates them. */
export async function openFindings(db: Knex) {
  await migrate(db, 'reconciliation', STEPS)
  return {
    async cursor(id: string): Promise<Cursor | null> {
      return (await db<Cursor>(CURSORS).where({ id }).first('id', 'block', 'judged')) ?? null
    },
    /**
     * Writes rows and cursor in one transaction, so that after a crash the same range is read again. `instead` names
     * blocks that were read whole: what was found there before and is not among the rows was removed by a
     * reorganisation.
     */
    async put(rows: readonly Row[], cursor?: Cursor, instead?: ReadRange): Promise<void> {
      await db.transaction(async (transaction) => {
        const excluded = (column: string): Knex.Raw => transaction.raw('excluded.??', [column])
        const stillAlerted = transaction.raw(STILL_ALERTED)
        if (instead) {
          const { network, from, to } = instead
          const ids = new Set(rows.map(({ id }) => id))
          const found = await transaction<StoredRow>(TABLE)
            .where({ network })
            .whereBetween('block', [from, to])
            .select('id')
          for (const { id } of found) if (!ids.has(id)) await transaction<StoredRow>(TABLE).where({ id }).delete()
        }
        for (let at = 0; at < rows.length; at += ROWS_PER_INSERT)
          await transaction<StoredRow>(TABLE)
            .insert(rows.slice(at, at + ROWS_PER_INSERT).map(toStored))
            .onConflict('id')
            .merge({ ...Object.fromEntries(MERGED.map((column) => [column, excluded(column)])), alerted: stillAlerted })
        if (cursor) await transaction<Cursor>(CURSORS).insert(cursor).onConflict('id').merge()
      })
    },
    async remove(id: string): Promise<void> {
      await db<StoredRow>(TABLE).where({ id }).delete()
    },
    /** Returns those of the payments that have a transfer. */
    async transferred(payments: readonly string[]): Promise<ReadonlySet<string>> {
      const found = new Set<string>()
      for (let at = 0; at < payments.length; at += KEYS_PER_QUERY) {
        const some = payments.slice(at, at + KEYS_PER_QUERY)
        const rows = await db<StoredRow>(TABLE)
          .whereIn('payment', some)
          .whereNotNull('transaction_hash')
          .select('payment')
        for (const { payment } of rows) found.add(payment as string)
      }
      return found
    },
    /** Returns rows, newest first: of one network, or of all if `network` is absent. */
    async list(buckets: readonly Bucket[], limit: number, network?: string): Promise<readonly Row[]> {
      const rows = await db<StoredRow>(TABLE)
        .whereIn('bucket', [...buckets])
        .where(isOn(network))
        .orderBy([{ column: 'at', order: 'desc' }, { column: 'id' }])
        .limit(limit)
      return rows.map(fromStored)
    },
    /** Returns rows of authorizations that others sent, found since this moment (ms), newest first. Never own wallets'. */
    async foreignSince(since: number, limit: number): Promise<readonly Row[]> {
      const rows = await db<StoredRow>(TABLE)
        .where({ is_foreign: 1, own: 0 })
        .where('at', '>=', since)
        .orderBy('at', 'desc')
        .limit(limit)
      return rows.map(fromStored)
    },
    async counts(network: string): Promise<ReadonlyMap<Bucket, number>> {
      const rows = await db(COUNTS)
        .where(isOn(network))
        .groupBy('bucket')
        .select('bucket')
        .sum<{ bucket: Bucket; n: string | number }[]>({ n: 'count' })
      return new Map(rows.map(({ bucket, n }) => [bucket, Number(n)]))
    },
    /** Returns rows that need an alert and had none. Transfers of the operator's own wallets never do. */
    async notAlerted(limit: number): Promise<readonly Row[]> {
      const rows = await db<StoredRow>(TABLE)
        .whereIn('bucket', [...ALARMING])
        .where({ alerted: 0, own: 0 })
        .limit(limit)
      return rows.map(fromStored)
    },
    async markAlerted(ids: readonly string[]): Promise<void> {
      await db<StoredRow>(TABLE)
        .whereIn('id', [...ids])
        .update({ alerted: 1 })
    },
  }
}

const isOn = (network: string | undefined) => (query: Knex.QueryBuilder) =>
  void (network === undefined ? query : query.whereIn('network', [network, '']))

export type Findings = Awaited<ReturnType<typeof openFindings>>

function toStored({ transaction, amount, isOwn, isForeign, ...rest }: Row): StoredRow {
  return {
    ...rest,
    transaction_hash: transaction,
    amount: amount === null ? null : String(amount),
    own: isOwn ? 1 : 0,
    is_foreign: isForeign ? 1 : 0,
    alerted: 0,
  }
}

function fromStored({ transaction_hash, amount, own, is_foreign, alerted: _alerted, ...rest }: StoredRow): Row {
  return {
    ...rest,
    transaction: transaction_hash,
    amount: amount === null ? null : BigInt(amount),
    isOwn: own === 1,
    isForeign: is_foreign === 1,
  }
}

/** A row as JSON: the amount as a decimal string, the time in ISO form. */
export function rowToJson({ amount, at, isOwn, isForeign, ...row }: Row) {
  return {
    ...row,
    foreign: isForeign,
    amount: amount === null ? null : String(amount),
    own: isOwn,
    at: new Date(at).toISOString(),
  }
}
