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
/** The columns of a snapshot. */
export const SNAPSHOT_COLUMNS = Object.keys(COLUMNS) as readonly (keyof Snapshot)[]
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
      for (const name of SNAPSHOT_COLUMNS) {
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
      JSON.stringify(
        snapshots.slice(start, start + CHUNK).map((snapshot) => SNAPSHOT_COLUMNS.map((name) => snapshot[name])),
      ),
    )
  return chunks
}

/** A stretch of minutes. */
export interface Span {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

/** What changes whenever somebody writes. */
export interface SeriesState {
  /** Number of snapshots. Every insert adds to it, and nothing is ever deleted: with the same number, the same are stored. */
  readonly count: number
  /** The times of the snapshots that are still being computed; null if none are. */
  readonly missing: Span | null
}

export interface SnapshotRange extends Span {
  readonly asOf: number
  readonly limit: number
}

export interface Snapshots {
  /** The newest snapshot known at `asOf`. */
  latest(asOf: number): Promise<Snapshot | null>
  /** The named columns of the snapshots of [from, to) known at `asOf`, oldest first. */
  between<Name extends keyof Snapshot>(names: readonly Name[], range: SnapshotRange): Promise<Pick<Snapshot, Name>[]>
  /** Adds snapshots. Stored ones are never changed. */
  add(snapshots: EncodedSnapshots): Promise<void>
  /** Notes that snapshots before a time are still missing; null if none are. */
  fillBefore(time: number | null): Promise<void>
  /** Reads the state: one statement that finds a row of the series by its key. */
  state(): Promise<SeriesState>
  /** The times of the snapshots that are still being computed; null if none are. */
  missing(): Promise<Span | null>
  /** Number of snapshots, and the times of the first and the last. */
  extent(): Promise<{ count: number; first: number | null; last: number | null }>
  /** Stores the state of the model after the bar that closed at `asOf`, replacing the last one. */
  keep(asOf: number, state: Buffer): Promise<void>
  /** The state stored last; null if there is none. */
  kept(): Promise<{ asOf: number; state: Buffer } | null>
}

/** Number of writes of this process by database. */
const writes = new WeakMap<Database, number>()

/** A number that rises with every write of this process to its snapshots in a database. */
export function writesTo(db: Database): number {
  return writes.get(db) ?? 0
}

async function noted<Result>(db: Database, write: Promise<Result>): Promise<Result> {
  try {
    return await write
  } finally {
    writes.set(db, writesTo(db) + 1)
  }
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
  /**
   * The snapshots known at `asOf` that are earlier than `to`. There is one upper bound of their times: of two, SQLite takes
   * the first for the search of the index, and reads all rows up to there.
   */
  const known = (names: readonly (keyof Snapshot)[], asOf: number, to = Infinity) =>
    db<Snapshot & { series: number }>('regime_snapshots')
      .select(names)
      .where('series', series)
      .where('as_of', '<=', Math.min(asOf, to - 1))
      .where('known_at', '<=', asOf)

  const checkpoint = db.raw('(select as_of from regime_checkpoints where series = regime_series.id) as kept')
  const state = async (): Promise<SeriesState> => {
    const row = (await db('regime_series').where('id', series).first('snapshots', 'filled_before', checkpoint)) as {
      snapshots: number
      filled_before: number | null
      kept: number | null
    }
    return { count: row.snapshots, missing: missingOf(row) }
  }

  return {
    async latest(asOf) {
      return ((await known(SNAPSHOT_COLUMNS, asOf).orderBy('as_of', 'desc').first()) as Snapshot | undefined) ?? null
    },
    between: async (names, { from, to, asOf, limit }) =>
      await known(names, asOf, to).where('as_of', '>=', from).orderBy('as_of').limit(limit),
    async add(snapshots) {
      for (const rows of snapshots) await noted(db, insertAndCount(db, series, rows))
    },
    async fillBefore(time) {
      await noted(db, db('regime_series').where('id', series).update({ filled_before: time }))
    },
    state,
    missing: async () => (await state()).missing,
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
      const kept = { series, as_of: asOf, state }
      await noted(db, db('regime_checkpoints').insert(kept).onConflict('series').merge())
    },
    async kept() {
      const row = (await db('regime_checkpoints').where({ series }).first()) as
        { as_of: number; state: Buffer } | undefined
      return row ? { asOf: row.as_of, state: row.state } : null
    },
  }
}

function missingOf(row: { snapshots: number; filled_before: number | null; kept: number | null }): Span | null {
  if (row.snapshots === 0) return { from: -Infinity, to: Infinity }
  if (row.filled_before === null) return null
  return { from: row.kept === null ? -Infinity : row.kept + 1, to: row.filled_before }
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
