/** Settled funding rates: what was paid, by contract and time, and how far each contract has been read. */
import type { Database, Migration } from 'tollgate/plugin'
import type { VenueName } from './funding-rate.ts'

/** The tables `funding_settlements` and `funding_contracts`. */
export const settlementMigration: Migration = async (db) => {
  await db.schema.createTable('funding_settlements', (table) => {
    table.text('venue').notNullable()
    table.text('instrument').notNullable()
    table.text('symbol').notNullable()
    table.bigInteger('time').notNullable()
    table.text('rate').notNullable()
    table.primary(['venue', 'instrument', 'time'])
    table.index(['symbol', 'time'])
  })
  await db.schema.createTable('funding_contracts', (table) => {
    table.text('venue').notNullable()
    table.text('instrument').notNullable()
    table.text('symbol').notNullable()
    // Every settlement from `held_from` to `reached` is stored.
    table.bigInteger('held_from').notNullable()
    table.bigInteger('reached').notNullable()
    table.bigInteger('updated_at').notNullable()
    table.text('error')
    table.primary(['venue', 'instrument'])
    table.index(['symbol'])
  })
}

/** A settlement of one contract. Times are epoch seconds. */
export interface Settlement {
  readonly venue: VenueName
  readonly instrument: string
  readonly symbol: string
  readonly time: number
  /** Fraction for the interval that ended at `time`, as a decimal. */
  readonly rate: string
}

export interface HeldContract {
  readonly venue: VenueName
  readonly instrument: string
  readonly symbol: string
  readonly held_from: number
  readonly reached: number
  readonly updated_at: number
  /** Why the last request failed; null if it did not. */
  readonly error: string | null
}

export interface SettlementRange {
  readonly symbols: readonly string[]
  /** All venues if it is empty. */
  readonly venues: readonly string[]
  /** Inclusive, epoch seconds. */
  readonly from: number
  /** Exclusive. */
  readonly to: number
  /** Only settlements after this one, in order of time, venue and contract. */
  readonly after: readonly [time: number, venue: string, instrument: string] | null
  readonly limit: number
}

/** Where settled rates come from. Sample, replay and online implement it alike. */
export interface SettlementSource {
  /** Up to `limit` settlements, in order of time, venue and contract. */
  read(range: SettlementRange): Promise<readonly Settlement[]>
  /** The last settlement of a contract before a time. */
  before(settlement: Settlement): Promise<Settlement | null>
  /** The contracts of these symbols, and from when to when they are held. */
  contracts(symbols: readonly string[]): Promise<readonly HeldContract[]>
}

/** Rows per statement. */
const BATCH = 200

/** Stores what one request has read of a contract, and how far that is, in one transaction. */
export async function storeSettlements(
  db: Database,
  rows: readonly Settlement[],
  contract: HeldContract,
): Promise<void> {
  await db.transaction(async (tx) => {
    for (let at = 0; at < rows.length; at += BATCH)
      await tx('funding_settlements')
        .insert(rows.slice(at, at + BATCH))
        .onConflict(['venue', 'instrument', 'time'])
        .ignore()
    await tx('funding_contracts').insert(contract).onConflict(['venue', 'instrument']).merge()
  })
}

export async function readContract(db: Database, venue: VenueName, instrument: string): Promise<HeldContract | null> {
  return (await db<HeldContract>('funding_contracts').where({ venue, instrument }).first()) ?? null
}

/** Reads settlements from the database. */
export function createSettlementSource(db: Database): SettlementSource {
  return {
    async read({ symbols, venues, from, to, after, limit }) {
      const query = db<Settlement>('funding_settlements')
        .whereIn('symbol', [...symbols])
        .where('time', '>=', from)
        .where('time', '<', to)
        .orderBy(['time', 'venue', 'instrument'])
        .limit(limit)
      if (venues.length > 0) void query.whereIn('venue', [...venues])
      if (after) void query.whereRaw('(time, venue, instrument) > (?, ?, ?)', [...after])
      return query
    },
    async before({ venue, instrument, time }) {
      const query = db<Settlement>('funding_settlements').where({ venue, instrument }).where('time', '<', time)
      return (await query.orderBy('time', 'desc').first()) ?? null
    },
    contracts: async (symbols) =>
      db<HeldContract>('funding_contracts')
        .whereIn('symbol', [...symbols])
        .orderBy(['venue', 'instrument']),
  }
}
