/**
 * Stores snapshots in the database. Each is written once and can be read as of any time. While a minute is held, what was
 * sold for it is kept apart, and stays readable as of then.
 */
import { type Database, isPostgres, type Migration } from 'tollgate/plugin'
import { bulkInsertSql } from '../lib/bulk-insert.ts'
import { MODELS } from './regime-model.ts'

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
  /** From when on it was sold: the close of its bar, or later if it was computed late. */
  readonly known_at: number
  /** How it came about; null if that was not recorded, as by earlier releases: it then counts as back-filled. */
  readonly origin: Origin | null
  /** When it was computed; null if that was not recorded. */
  readonly computed_at: number | null
  /** Bits of the venues behind its bar, as the market states them; null if they were not recorded. */
  readonly venues: number | null
  /** How far these venues lay apart, basis points. */
  readonly spread_bps: number | null
  /** Index in MODELS of the model that computed it; null for the first one, whose rows lack the forecasts below too. */
  readonly model: number | null
  /** Square root of the mean variance of the next hour, and quantiles of its volatility. */
  readonly forecast_vol_mean: number | null
  readonly forecast_vol_median: number | null
  readonly forecast_vol_p10: number | null
  readonly forecast_vol_p90: number | null
  /** Median hourly volatility of the last 180 days; null if it was not recorded. */
  readonly reference_vol: number | null
}

/** Computed from bars that were fetched when the collection of them began. */
export const BACKFILL = 0
/** Computed within five minutes of its minute. */
export const LIVE = 1
/** Computed later, after an outage or a disagreement of venues. */
export const CATCHUP = 2
/** There is no bar of its minute: the label before is repeated. */
export const HELD = 3
export const ORIGINS = ['backfill', 'live', 'catchup', 'held'] as const
export type Origin = typeof BACKFILL | typeof LIVE | typeof CATCHUP | typeof HELD

/** A snapshot that was sold for a minute while the minute was held. */
export interface HeldSnapshot extends Snapshot {
  /** As_of of the last snapshot with a bar, which it repeats. */
  readonly rests_on: number
  /** When the minute was classified; null while it is held. */
  readonly superseded_at: number | null
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
  origin: 'smallint',
  computed_at: 'bigint',
  venues: 'integer',
  spread_bps: 'real',
  model: 'smallint',
  forecast_vol_mean: 'real',
  forecast_vol_median: 'real',
  forecast_vol_p10: 'real',
  forecast_vol_p90: 'real',
  reference_vol: 'real',
}
/** Columns that came later, by migration. They are null in older rows. */
const PROVENANCE_COLUMNS = ['origin', 'computed_at', 'venues', 'spread_bps'] as const
const MODEL_COLUMNS = [
  'model',
  'forecast_vol_mean',
  'forecast_vol_median',
  'forecast_vol_p10',
  'forecast_vol_p90',
] as const
const REFERENCE_COLUMN = 'reference_vol'
const LATER_COLUMNS: ReadonlySet<string> = new Set([...PROVENANCE_COLUMNS, ...MODEL_COLUMNS, REFERENCE_COLUMN])
/** The columns of a snapshot. */
export const SNAPSHOT_COLUMNS = Object.keys(COLUMNS) as readonly (keyof Snapshot)[]
const HELD_COLUMNS: readonly string[] = [...SNAPSHOT_COLUMNS, 'rests_on', 'superseded_at']
const CHUNK = 10_000

/** Every series bears the name of the first model, whichever has computed its snapshots since. */
const SERIES = MODELS[0]

/** The tables of snapshots and of the state of the model. */
export const migrations: readonly Migration[] = [
  async (db) => {
    // The series of one market over one set of bars. Series never mix.
    await db.schema.createTable('regime_series', (table) => {
      table.increments('id')
      table.text('symbol').notNullable()
      table.text('model').notNullable()
      table.text('origin').notNullable()
      table.unique(['symbol', 'model', 'origin'])
    })
    await db.schema.createTable('regime_snapshots', (table) => {
      table.integer('series').notNullable()
      for (const name of SNAPSHOT_COLUMNS.filter((one) => !LATER_COLUMNS.has(one))) {
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
  async (db) => {
    // Added without rewriting the table, which may have tens of millions of rows.
    await db.schema.alterTable('regime_snapshots', (table) => {
      for (const name of PROVENANCE_COLUMNS) table.specificType(name, COLUMNS[name])
    })
    // The few that came late or were held. No other index finds them among the rest.
    await db.raw('create index regime_snapshots_late on regime_snapshots (series, origin, as_of) where origin >= 2')
    await db.schema.createTable('regime_held', (table) => {
      table.integer('series').notNullable()
      const newer: readonly string[] = [...MODEL_COLUMNS, REFERENCE_COLUMN]
      for (const name of SNAPSHOT_COLUMNS.filter((one) => !newer.includes(one))) {
        const column = table.specificType(name, COLUMNS[name])
        if (name !== 'realized_vol_1h' && !LATER_COLUMNS.has(name)) column.notNullable()
      }
      table.bigInteger('rests_on').notNullable()
      table.bigInteger('superseded_at')
      table.primary(['series', 'as_of'])
    })
    // Number of changes of the held snapshots of each series.
    await db.schema.alterTable('regime_series', (table) => {
      table.bigInteger('held_changes').notNullable().defaultTo(0)
    })
  },
  async (db) => {
    // Which model computed a snapshot, and what newer models forecast. A series goes on when the model changes: what is stored stays.
    for (const name of ['regime_snapshots', 'regime_held'])
      await db.schema.alterTable(name, (table) => {
        for (const column of MODEL_COLUMNS) table.specificType(column, COLUMNS[column])
      })
  },
  async (db) => {
    // The volatility at which the scalar is 1.
    for (const name of ['regime_snapshots', 'regime_held'])
      await db.schema.alterTable(name, (table) => {
        table.specificType(REFERENCE_COLUMN, COLUMNS[REFERENCE_COLUMN])
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
  /** Rises with every change of the held snapshots. */
  readonly heldChanges: number
  /** The times of the snapshots that are still being computed; null if none are. */
  readonly missing: Span | null
}

/** Times of snapshots, epoch seconds; null if there are none. */
export interface SnapshotsAround {
  readonly first: number | null
  readonly last: number | null
  /** The last one before the window. */
  readonly before: number | null
  /** The first one in the window. */
  readonly inside: number | null
}

export interface SnapshotRange extends Span {
  readonly asOf: number
  readonly limit: number
  /** Only snapshots at multiples of this many seconds; all if absent. */
  readonly everySeconds?: number
}

export interface Snapshots {
  /** The newest snapshot known at `asOf`. */
  latest(asOf: number): Promise<Snapshot | null>
  /** The named columns of the snapshots of [from, to) known at `asOf`, oldest first; of one origin, or of all. */
  between<Name extends keyof Snapshot>(
    names: readonly Name[],
    range: SnapshotRange,
    origin?: Origin,
  ): Promise<Pick<Snapshot, Name>[]>
  /** Snapshots that were sold for held minutes of [from, to), oldest first; superseded ones too. */
  held(minutes: Span): Promise<HeldSnapshot[]>
  /** When the last held snapshot of a minute before `time` was superseded: Infinity if one is not, -Infinity if there are none. */
  heldUntil(time: number): Promise<number>
  /** The minutes that are still held. */
  heldMinutes(): Promise<number[]>
  /** Adds snapshots of held minutes. Those that are there already stay. */
  hold(snapshots: readonly Omit<HeldSnapshot, 'superseded_at'>[]): Promise<void>
  /** Marks the held snapshots up to `last` as superseded. */
  supersede(last: number, at: number): Promise<void>
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
  /** The ends of what is known at `asOf`, what comes before a window, and whether the window holds something. One statement. */
  around(window: Span, asOf: number): Promise<SnapshotsAround>
  /** Stores the state of the model after the bar that closed at `asOf`, replacing the last one. */
  keep(asOf: number, state: Buffer): Promise<void>
  /** The state stored last; null if there is none. */
  kept(): Promise<{ asOf: number; state: Buffer } | null>
}

/** Times at even distances: first, distance and last. SQLite finds each by the key. */
const EVERY = `with recursive times (at) as (select cast(? as bigint) union all
  select at + cast(? as bigint) from times where at < cast(? as bigint)) select at from times`

const everyOf = (from: number, to: number, asOf: number, step: number): [number, number, number] => [
  Math.ceil(from / step) * step,
  step,
  Math.ceil(Math.min(to, asOf + 1) / step) * step - step,
]

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
  const row = (await db('regime_series').where({ symbol, model: SERIES }).orderBy('id', 'desc').first('origin')) as
    { origin: string } | undefined
  return row ? openSnapshots(db, symbol, row.origin) : null
}

/** The series of one market over one set of bars, created on first use. */
export async function openSnapshots(db: Database, symbol: string, origin: string): Promise<Snapshots> {
  const key = { symbol, model: SERIES, origin }
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
    const columns = ['snapshots', 'filled_before', 'held_changes']
    const row = (await db('regime_series')
      .where('id', series)
      .first(...columns, checkpoint)) as {
      snapshots: number
      filled_before: number | null
      held_changes: number
      kept: number | null
    }
    return { count: row.snapshots, heldChanges: row.held_changes, missing: missingOf(row) }
  }

  return {
    async latest(asOf) {
      return ((await known(SNAPSHOT_COLUMNS, asOf).orderBy('as_of', 'desc').first()) as Snapshot | undefined) ?? null
    },
    async between(names, { from, to, asOf, limit, everySeconds }, origin) {
      const found = known(names, asOf, to).where('as_of', '>=', from).orderBy('as_of').limit(limit)
      // SQLite would fetch all rows to compute a remainder, and PostgreSQL joins badly with a list of unknown length.
      if (everySeconds !== undefined && isPostgres(db)) return found.whereRaw('as_of % ? = 0', [everySeconds])
      if (everySeconds !== undefined)
        return found.whereRaw(`as_of in (${EVERY})`, everyOf(from, to, asOf, everySeconds))
      // Both conditions: the first lets the database use the index of the few.
      if (origin === CATCHUP || origin === HELD) return found.whereRaw('origin >= 2').where({ origin })
      // A snapshot of an earlier release has no origin and counts as back-filled.
      if (origin === BACKFILL)
        return found.where((past) => void past.whereNull('origin').orWhere('origin', '=', origin))
      return origin === undefined ? found : found.where({ origin })
    },
    ...heldOf(db, series),
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
    async around({ from, to }, asOf) {
      const rows = 'from regime_snapshots where series = ? and known_at <= ? and as_of'
      const one = (name: keyof SnapshotsAround, where: string, order: 'asc' | 'desc', ...times: number[]) =>
        db.raw(`(select as_of ${rows} ${where} order by as_of ${order} limit 1) as ${name}`, [series, asOf, ...times])
      const row = await db('regime_series')
        .where('id', series)
        .first(
          one('first', '<= ?', 'asc', asOf),
          one('last', '<= ?', 'desc', asOf),
          one('before', '< ?', 'desc', Math.min(from, asOf + 1)),
          one('inside', 'between ? and ?', 'asc', from, Math.min(to - 1, asOf)),
        )
      return row as SnapshotsAround
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

/** The minutes of a series that are or were held. */
function heldOf(
  db: Database,
  series: number,
): Pick<Snapshots, 'held' | 'heldUntil' | 'heldMinutes' | 'hold' | 'supersede'> {
  return {
    async held({ from, to }) {
      const minutes = db('regime_held').where({ series }).where('as_of', '>=', from).where('as_of', '<', to)
      return (await minutes.orderBy('as_of').select(HELD_COLUMNS)) as HeldSnapshot[]
    },
    async heldUntil(time) {
      const before = db('regime_held').where({ series }).where('as_of', '<', time)
      const found = (await before
        .select(db.raw('count(*) as total, count(superseded_at) as superseded, max(superseded_at) as last'))
        .first()) as { total: number; superseded: number; last: number | null }
      return found.superseded < found.total ? Infinity : (found.last ?? -Infinity)
    },
    async heldMinutes() {
      const current = db('regime_held').where({ series }).whereNull('superseded_at')
      return ((await current.select('as_of')) as { as_of: number }[]).map(({ as_of }) => as_of)
    },
    async hold(snapshots) {
      await noted(
        db,
        changeHeld(db, series, async (transaction) => {
          const rows = snapshots.map((snapshot) => ({ ...snapshot, series }))
          await transaction('regime_held').insert(rows).onConflict(['series', 'as_of']).ignore()
        }),
      )
    },
    async supersede(last, at) {
      await noted(
        db,
        changeHeld(db, series, async (transaction) => {
          const current = transaction('regime_held').where({ series }).where('as_of', '<=', last)
          await current.whereNull('superseded_at').update({ superseded_at: at })
        }),
      )
    },
  }
}

async function changeHeld(
  db: Database,
  series: number,
  change: (transaction: Database) => Promise<void>,
): Promise<void> {
  await db.transaction(async (transaction) => {
    await change(transaction)
    const more = transaction.raw('held_changes + 1')
    await transaction('regime_series').where('id', series).update({ held_changes: more })
  })
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
