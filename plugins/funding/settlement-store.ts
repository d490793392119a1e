/** Settled funding rates: what was paid, by contract and time, and how far each contract has been read. */
import type { Database, Migration } from 'tollgate/plugin'
import { insertRowsSql } from '../lib/bulk-insert.ts'
import { extremeSymbols } from './extreme-symbols.ts'
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
  /** Those of these symbols whose settlements are read as they come. None of a sample or a recording, which has what it has. */
  collected(symbols: readonly string[]): Promise<readonly string[]>
}

const COLUMNS = { venue: 'text', instrument: 'text', symbol: 'text', time: 'bigint', rate: 'text' } as const
/** Rows that one transaction deletes. */
const BATCH = 200

/** Stores what one request has read of a contract, and how far that is, in one transaction. */
export async function storeSettlements(
  db: Database,
  rows: readonly Settlement[],
  contract: HeldContract,
): Promise<void> {
  await db.transaction(async (tx) => {
    if (rows.length > 0) {
      const values = rows.map(({ venue, instrument, symbol, time, rate }) => [venue, instrument, symbol, time, rate])
      await tx.raw(insertRowsSql(tx, 'funding_settlements', COLUMNS), [JSON.stringify(values)])
    }
    await tx('funding_contracts').insert(contract).onConflict(['venue', 'instrument']).merge()
  })
}

/**
 * Deletes the settlements from before a time, and moves the beginning of what is held of each contract with them: no answer
 * calls a window complete whose settlements are gone. A contract of which nothing is left is forgotten. Each step is a
 * transaction of at most BATCH rows. Returns how many were deleted.
 */
export async function pruneSettlements(db: Database, before: number, signal: AbortSignal): Promise<number> {
  const old = await db<HeldContract>('funding_contracts')
    .where('held_from', '<', before)
    .select('venue', 'instrument', 'reached')
  let deleted = 0
  for (const { venue, instrument, reached } of old)
    for (let isDone = false; !isDone && !signal.aborted;) {
      const rows = () => db<Settlement>('funding_settlements').where({ venue, instrument })
      const oldest = await rows().where('time', '<', before).orderBy('time').limit(BATCH).select('time')
      isDone = oldest.length < BATCH
      const heldFrom = isDone ? before : oldest.at(-1)!.time + 1
      await db.transaction(async (tx) => {
        const contract = tx('funding_contracts').where({ venue, instrument })
        deleted += await tx('funding_settlements').where({ venue, instrument }).where('time', '<', heldFrom).delete()
        await (isDone && reached < before ? contract.delete() : contract.update({ held_from: heldFrom }))
      })
    }
  return deleted
}

/** What is held of the contracts of a venue, by their names. */
export async function readContracts(db: Database, venue: VenueName): Promise<ReadonlyMap<string, HeldContract>> {
  const contracts = await db<HeldContract>('funding_contracts').where({ venue })
  return new Map(contracts.map((contract) => [contract.instrument, contract]))
}

/** Reads settlements from the database. `historySymbols` are those of the settings. */
export function createSettlementSource(db: Database, historySymbols: readonly string[] = []): SettlementSource {
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
    async collected(symbols) {
      const all = new Set([...historySymbols, ...(await extremeSymbols(db))])
      return symbols.filter((symbol) => all.has(symbol))
    },
  }
}
