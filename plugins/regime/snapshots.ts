/** Stores snapshots in the database. They are written once and can be read as of any time. */
import { type Database, isPostgres, type Migration } from 'tollgate/plugin'
import { bulkInsertSql } from '../lib/bulk-insert.ts'
import { MODEL } from './regime-model.ts'

/** A stored snapshot. Times are epoch seconds, volatilities fractions per year. */
export interface Snapshot {
  readonly as_of: number
  readonly volatile: 0 | 1
  readonly confidence: number
  readonly position_scalar: number
  readonly forecast_vol: number
  readonly boundary_vol: number
  readonly realized_vol_1h: number | null
  readonly since: number
  readonly bars_used: number
  /** When the last bar behind it closed. Later than as_of for minutes within a hole in the data. */
  readonly known_at: number
}

const COLUMNS: Readonly<Record<keyof Snapshot, string>> = {
  as_of: 'bigint',
  volatile: 'smallint',
  confidence: 'double precision',
  position_scalar: 'double precision',
  forecast_vol: 'double precision',
  boundary_vol: 'double precision',
  realized_vol_1h: 'double precision',
  since: 'bigint',
  bars_used: 'integer',
  known_at: 'bigint',
}
const NAMES = Object.keys(COLUMNS) as (keyof Snapshot)[]
const CHUNK = 10_000

/** The tables of snapshots and of the state of the model. */
export const migrations: readonly Migration[] = [
  async (db) => {
    // The series of one model over one market and one set of bars. Series never mix.
    await db.schema.createTable('regime_series', (table) => {
      table.increments('id')
      table.text('symbol').notNullable()
      table.text('model').notNullable()
      table.text('origin').notNullable()
      table.unique(['symbol', 'model', 'origin'])
    })
    await db.schema.createTable('regime_snapshots', (table) => {
      table.integer('series').notNullable()
      for (const name of NAMES) {
        const column = table.specificType(name, COLUMNS[name])
        if (name !== 'realized_vol_1h') column.notNullable()
      }
      table.primary(['series', 'as_of'])
    })
    await db.schema.createTable('regime_checkpoints', (table) => {
      table.integer('series').primary()
      table.bigInteger('as_of').notNullable()
      table.binary('state').notNullable()
    })
  },
  async (db) => {
    // How many snapshots each series has. Counting a long series takes seconds, so every insert adds to this number.
    await db.schema.alterTable('regime_series', (table) => {
      table.bigInteger('snapshots').notNullable().defaultTo(0)
    })
    await db.raw(`update regime_series
      set snapshots = (select count(*) from regime_snapshots where series = regime_series.id)`)
  },
  async (db) => {
    // Snapshots before this time are being computed; null if none are missing.
    await db.schema.alterTable('regime_series', (table) => {
      table.bigInteger('filled_before')
    })
  },
]

/** Snapshots as JSON arrays of rows, ready to be inserted. */
export type EncodedSnapshots = readonly string[]

/** Encodes snapshots for `Snapshots.add`. A worker thread does it for long stretches. */
export function encodeSnapshots(snapshots: readonly Snapshot[]): EncodedSnapshots {
  const chunks: string[] = []
  for (let start = 0; start < snapshots.length; start += CHUNK)
    chunks.push(
      JSON.stringify(snapshots.slice(start, start + CHUNK).map((snapshot) => NAMES.map((name) => snapshot[name]))),
    )
  return chunks
}

export interface Snapshots {
  /** The newest snapshot known at `asOf`. */
  latest(asOf: number): Promise<Snapshot | null>
  /** The named columns of the snapshots of [from, to) known at `asOf`, oldest first. */
  between<Name extends keyof Snapshot>(
    names: readonly Name[],
    range: { readonly from: number; readonly to: number; readonly asOf: number; readonly limit: number },
  ): Promise<Pick<Snapshot, Name>[]>
  /** Adds snapshots. Stored ones are never changed. */
  add(snapshots: EncodedSnapshots): Promise<void>
  /** Notes that snapshots before a time are still missing; null if none are. */
  fillBefore(time: number | null): Promise<void>
  /** True if no snapshot is stored yet, or some of [from, to) are still being computed. */
  lacks(from: number, to: number): Promise<boolean>
  /** Number of snapshots, and the times of the first and the last. */
  extent(): Promise<{ count: number; first: number | null; last: number | null }>
  /** Stores the state of the model after the bar that closed at `asOf`, replacing the last one. */
  keep(asOf: number, state: Buffer): Promise<void>
  /** The state stored last; null if there is none. */
  kept(): Promise<{ asOf: number; state: Buffer } | null>
}

/** The newest series of a market, or null, for readers that do not know the id of its bars. */
export async function newestSnapshots(db: Database, symbol: string): Promise<Snapshots | null> {
  const row = (await db('regime_series').where({ symbol, model: MODEL }).orderBy('id', 'desc').first('origin')) as
    { origin: string } | undefined
  return row ? openSnapshots(db, symbol, row.origin) : null
}

/** The series of one market over one set of bars, created on first use. */
export async function openSnapshots(db: Database, symbol: string, origin: string): Promise<Snapshots> {
  const key = { symbol, model: MODEL, origin }
  await db('regime_series').insert(key).onConflict(['symbol', 'model', 'origin']).ignore()
  const { id: series } = (await db('regime_series').where(key).first('id')) as { id: number }
  const known = (names: readonly (keyof Snapshot)[], asOf: number) =>
    db<Snapshot & { series: number }>('regime_snapshots')
      .select(names)
      .where('series', series)
      .where('as_of', '<=', asOf)
      .where('known_at', '<=', asOf)

  return {
    async latest(asOf) {
      return ((await known(NAMES, asOf).orderBy('as_of', 'desc').first()) as Snapshot | undefined) ?? null
    },
    between: async (names, { from, to, asOf, limit }) =>
      await known(names, asOf).where('as_of', '>=', from).where('as_of', '<', to).orderBy('as_of').limit(limit),
    async add(snapshots) {
      for (const rows of snapshots) await insertAndCount(db, series, rows)
    },
    async fillBefore(time) {
      await db('regime_series').where('id', series).update({ filled_before: time })
    },
    async lacks(from, to) {
      const { snapshots, filled_before } = (await db('regime_series')
        .where('id', series)
        .first('snapshots', 'filled_before')) as { snapshots: number; filled_before: number | null }
      if (snapshots === 0) return true
      if (filled_before === null || from >= filled_before) return false
      const kept = (await db('regime_checkpoints').where({ series }).first('as_of')) as { as_of: number } | undefined
      return !kept || to > kept.as_of
    },
    async extent() {
      // Each end in a query of its own: SQLite reads the whole series for a minimum and a maximum in one.
      const end = (of: 'min' | 'max') => `(select ${of}(as_of) from regime_snapshots where series = s.id)`
      return (await db('regime_series as s')
        .where('s.id', series)
        .first('snapshots as count', db.raw(`${end('min')} as first`), db.raw(`${end('max')} as last`))) as {
        count: number
        first: number | null
        last: number | null
      }
    },
    async keep(asOf, state) {
      await db('regime_checkpoints').insert({ series, as_of: asOf, state }).onConflict('series').merge()
    },
    async kept() {
      const row = (await db('regime_checkpoints').where({ series }).first()) as
        { as_of: number; state: Buffer } | undefined
      return row ? { asOf: row.as_of, state: row.state } : null
    },
  }
}

/**
 * Inserts snapshots (a JSON array of rows) and adds the number of new ones to that of the series, in one transaction.
 * Snapshots that are stored already do not count, whichever process stored them.
 */
async function insertAndCount(db: Database, series: number, rows: string): Promise<void> {
  const insert = bulkInsertSql(db, 'regime_snapshots', COLUMNS)
  const count = (added: string): string => `update regime_series set snapshots = snapshots + ${added} where id = ?`
  if (isPostgres(db)) {
    const added = '(select count(*) from added)'
    await db.raw(`with added as (${insert} returning 1) ${count(added)}`, [series, rows, series])
    return
  }
  await db.transaction(async (transaction) => {
    await transaction.raw(insert, [series, rows])
    await transaction.raw(count('changes()'), [series])
  })
}
