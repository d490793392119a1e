/** What reconciliation has found, one row per transfer or per payment without one, and how far the chain is read. */
import type { Knex } from 'knex'
import type { Hex } from '../../config/networks.ts'
import { migrate, type Step } from '../../stores/migrations.ts'
import { ALARMING, type Bucket } from './buckets.ts'

export interface Row {
  /** "<transaction>/<log index>", or the key of a payment. */
  readonly id: string
  readonly bucket: Bucket
  readonly note: string
  /** CAIP-2. Empty where it was found while there was only one. */
  readonly network: string
  readonly transaction: Hex | null
  readonly block: number | null
  readonly payer: Hex
  /** What moved, or should have; atomic units. Null where it cannot be read. */
  readonly amount: bigint | null
  /** Key of the ledger's payment. */
  readonly payment: string | null
  /** From or by a wallet of our own. */
  readonly isOwn: boolean
  /** Milliseconds since the epoch. */
  readonly at: number
}

interface Stored {
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
  readonly at: number
  readonly alerted: number
}

/** How far one token's transfers to one payee are read. */
export interface Cursor {
  readonly id: string
  /** The next block to read. */
  readonly block: number
  /** Payments settled before this (ms) are judged, or older than the reading. */
  readonly judged: number
}

const TABLE = 'reconciled_rows'
const CURSORS = 'reconciled_to'

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
]

const AT_ONCE = 50

export async function openRows(db: Knex) {
  await migrate(db, 'reconciliation', STEPS)
  return {
    async cursor(id: string): Promise<Cursor | null> {
      return (await db<Cursor>(CURSORS).where({ id }).first('id', 'block', 'judged')) ?? null
    },
    /** Rows and the cursor behind them, all or nothing: a crash reads the range again and finds the same rows. */
    async put(rows: readonly Row[], cursor?: Cursor): Promise<void> {
      await db.transaction(async (transaction) => {
        for (let at = 0; at < rows.length; at += AT_ONCE)
          await transaction<Stored>(TABLE)
            .insert(rows.slice(at, at + AT_ONCE).map(stored))
            .onConflict('id')
            .merge(['bucket', 'note', 'amount', 'payment', 'own'])
        if (cursor) await transaction<Cursor>(CURSORS).insert(cursor).onConflict('id').merge()
      })
    },
    async remove(id: string): Promise<void> {
      await db<Stored>(TABLE).where({ id }).delete()
    },
    /** Which of these payments have a transfer of their own. */
    async transferred(payments: readonly string[]): Promise<ReadonlySet<string>> {
      const found = new Set<string>()
      for (let at = 0; at < payments.length; at += 500) {
        const some = payments.slice(at, at + 500)
        const rows = await db<Stored>(TABLE).whereIn('payment', some).whereNotNull('transaction_hash').select('payment')
        for (const { payment } of rows) found.add(payment as string)
      }
      return found
    },
    /** Newest first; of one network, or of all. */
    async list(buckets: readonly Bucket[], limit: number, network?: string): Promise<readonly Row[]> {
      const rows = await db<Stored>(TABLE)
        .whereIn('bucket', [...buckets])
        .where(on(network))
        .orderBy([{ column: 'at', order: 'desc' }, { column: 'id' }])
        .limit(limit)
      return rows.map(row)
    },
    async counts(network: string): Promise<ReadonlyMap<Bucket, number>> {
      const rows = await db(TABLE)
        .where(on(network))
        .groupBy('bucket')
        .select('bucket')
        .count<{ bucket: Bucket; n: number }[]>({ n: '*' })
      return new Map(rows.map(({ bucket, n }) => [bucket, n]))
    },
    /** Rows that alarm and of which nobody was told yet; what our own wallets did alarms nobody. */
    async untold(limit: number): Promise<readonly Row[]> {
      const rows = await db<Stored>(TABLE)
        .whereIn('bucket', [...ALARMING])
        .where({ alerted: 0, own: 0 })
        .limit(limit)
      return rows.map(row)
    },
    async told(ids: readonly string[]): Promise<void> {
      await db<Stored>(TABLE)
        .whereIn('id', [...ids])
        .update({ alerted: 1 })
    },
  }
}

const on = (network: string | undefined) => (query: Knex.QueryBuilder) =>
  void (network === undefined ? query : query.whereIn('network', [network, '']))

export type Rows = Awaited<ReturnType<typeof openRows>>

function stored({ transaction, amount, isOwn, ...rest }: Row): Stored {
  return {
    ...rest,
    transaction_hash: transaction,
    amount: amount === null ? null : String(amount),
    own: isOwn ? 1 : 0,
    alerted: 0,
  }
}

function row({ transaction_hash: transaction, amount, own, alerted: _alerted, ...rest }: Stored): Row {
  return { ...rest, transaction, amount: amount === null ? null : BigInt(amount), isOwn: own === 1 }
}
