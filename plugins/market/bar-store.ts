/** Stores recorded and fetched bars in the database, with the time from which each version was known. */
import type { Database, Migration } from 'tollgate/plugin'
import { bulkInsertSql } from '../lib/bulk-insert.ts'
import type { BarRow, RejectedRow } from '../lib/feeds/bar-rows.ts'
import type { SourceRecord } from '../lib/feeds/source-health.ts'
import { createColumns, REVISED, type BarSources, type Columns, type BadPrint } from './bars.ts'
import { keptBooksMigration } from './order-books/kept-books.ts'

export interface Series {
  readonly id: number
  readonly venue: string
  readonly symbol: string
  readonly interval_seconds: number
}

const SERIES = ['id', 'venue', 'symbol', 'interval_seconds'] as const

/** The tables of market data. */
export const migrations: readonly Migration[] = [
  async (db) => {
    await db.schema.createTable('market_series', (table) => {
      table.increments('id')
      table.text('venue').notNullable()
      table.text('symbol').notNullable()
      table.integer('interval_seconds').notNullable()
      table.unique(['symbol', 'interval_seconds', 'venue'])
    })
    await db.schema.createTable('market_bars', (table) => {
      table.integer('series').notNullable()
      table.bigInteger('t_open').notNullable()
      for (const column of ['open', 'high', 'low', 'close', 'volume']) table.double(column).notNullable()
      table.specificType('state', 'smallint').notNullable()
      table.bigInteger('known_at').notNullable()
      table.bigInteger('superseded_at')
      table.primary(['series', 't_open', 'known_at'])
    })
    await db.schema.createTable('market_windows', (table) => {
      table.integer('series').notNullable()
      table.bigInteger('t_from').notNullable()
      table.bigInteger('t_to').notNullable()
      table.text('status').notNullable()
      table.integer('attempts').notNullable().defaultTo(0)
      table.bigInteger('next_at').notNullable()
      table.primary(['series', 't_from', 't_to'])
      table.index(['status', 'next_at'])
    })
    await db.schema.createTable('market_quality', (table) => {
      table.integer('series').notNullable()
      table.bigInteger('t_open').notNullable()
      table.text('kind').notNullable()
      table.text('detail').notNullable()
      table.primary(['series', 't_open', 'kind'])
    })
    await db.schema.createTable('market_notes', (table) => {
      table.text('name').primary()
      table.text('value').notNullable()
    })
  },
  async (db) => {
    // The windows of a series that are not fetched yet, and the end of its plan, without reading the fetched ones.
    await db.schema.alterTable('market_windows', (table) => {
      table.index(['series', 'status', 't_from'], 'market_windows_unfinished')
      table.index(['series', 't_to'], 'market_windows_end')
    })
    // How many rows of market_quality each series has. Every insert adds to this number.
    await db.schema.alterTable('market_series', (table) => {
      table.bigInteger('quality_notes').notNullable().defaultTo(0)
    })
    await db.raw(`update market_series
      set quality_notes = (select count(*) from market_quality where series = market_series.id)`)
  },
  async (db) => {
    // Which venues agreed on a bar, and by how much they differed. Bars of earlier releases came from one venue.
    await db.schema.alterTable('market_bars', (table) => {
      table.integer('venues')
      table.specificType('spread_bps', 'real')
    })
    await db.schema.createTable('market_rejected_rows', (table) => {
      table.increments('id')
      table.text('venue').notNullable()
      table.text('symbol').notNullable()
      // 0 for a row without a time that can be read.
      table.bigInteger('t_open').notNullable()
      table.text('reason').notNullable()
      table.text('row').notNullable()
      table.bigInteger('seen_at').notNullable()
      table.unique(['venue', 'symbol', 't_open', 'reason'])
    })
    await db.schema.createTable('market_venue_health', (table) => {
      table.text('venue').notNullable()
      table.text('symbol').notNullable()
      table.integer('failures').notNullable()
      table.integer('status').notNullable()
      table.text('reason').notNullable()
      table.bigInteger('since').notNullable()
      table.bigInteger('until').notNullable()
      table.primary(['venue', 'symbol'])
    })
    // Earlier releases stored a null of a venue as a price of zero, which no model survives. These bars are set aside and
    // fetched again.
    const bad = `from market_bars b join market_series s on s.id = b.series
      where (b.open <= 0 or b.high <= 0 or b.low <= 0 or b.close <= 0)
        and exists (select 1 from market_windows w where w.series = b.series)`
    const row = `cast(b.open as text) || ',' || cast(b.high as text) || ',' || cast(b.low as text) || ',' || cast(b.close as text)`
    await db.raw(`insert into market_rejected_rows (venue, symbol, t_open, reason, "row", seen_at)
      select s.venue, s.symbol, b.t_open, 'not_positive', ${row}, max(b.known_at) ${bad}
      group by s.venue, s.symbol, b.t_open, b.open, b.high, b.low, b.close on conflict do nothing`)
    await db.raw(`insert into market_windows (series, t_from, t_to, status, attempts, next_at)
      select distinct b.series, b.t_open, b.t_open + 60, 'gap', 0, 0 ${bad} on conflict do nothing`)
    await db.raw(`delete from market_bars where (open <= 0 or high <= 0 or low <= 0 or close <= 0)
      and exists (select 1 from market_windows w where w.series = market_bars.series)`)
  },
  keptBooksMigration,
]

const COLUMNS = {
  t_open: 'bigint',
  open: 'double precision',
  high: 'double precision',
  low: 'double precision',
  close: 'double precision',
  volume: 'double precision',
  state: 'smallint',
  known_at: 'bigint',
  superseded_at: 'bigint',
  venues: 'integer',
  spread_bps: 'real',
} as const
const CHUNK = 10_000
/** Number of rejected rows that are kept, the newest. */
const KEPT_REJECTED = 10_000

export interface BarStore {
  /** Returns the series of a venue, symbol and interval; creates it if it is new. */
  series(venue: string, symbol: string, intervalSeconds: number): Promise<Series>
  /**
   * The series in which a symbol is published, whichever venues stand behind it. The first time, it continues the longest
   * series of a single venue, as earlier releases kept it.
   */
  published(venue: string, symbol: string, intervalSeconds: number): Promise<Series>
  /** The same store within a transaction. */
  within(db: Database): BarStore
  allSeries(): Promise<readonly Series[]>
  /**
   * Adds bars; stored ones stay as they are. A bar counts as known from its close, or from `knownAt`. A bad print is
   * stored with its correction, which is known from the close of the bar that proved it.
   */
  add(series: Series, bars: Columns, options?: AddOptions): Promise<void>
  /** True if a bar with this time and these prices was ever stored, corrected since or not. The volume is ignored. */
  has(series: Series, bar: BarRow): Promise<boolean>
  /** Bars that open in [from, to), as known at `asOf`; times in epoch seconds. */
  read(series: Series, from: number, to: number, asOf: number): Promise<Columns>
  /**
   * Bars that open in [from, to) as each of them was first published, whatever was corrected later, with the venues
   * behind them. A bar that came after its minute had been given up is left out.
   */
  readFirst(series: Series, from: number, to: number): Promise<Columns & BarSources>
  /** First and last open; null if there are no bars. */
  extent(series: Series, asOf?: number): Promise<Extent | null>
  /** The last open; null if there are no bars. */
  last(series: Series, asOf?: number): Promise<number | null>
  /** Notes what is wrong with bars. A note that is there already stays as it is. */
  noteQuality(series: Series, notes: readonly QualityNote[]): Promise<void>
  /** Number of notes about the quality of bars, of all series together. */
  qualityNotes(): Promise<number>
  /** Keeps rows of a venue that were not good enough, the newest KEPT_REJECTED of all venues. */
  noteRejected(venue: string, symbol: string, rows: readonly RejectedRow[], seenAt: number): Promise<void>
  /** Number of rejected rows that are kept. */
  rejectedRows(): Promise<number>
  /** Stores how a venue fails for a symbol; forgets it if `failures` is 0. */
  keepHealth(record: SourceRecord): Promise<void>
  /** How venues fail. */
  health(): Promise<readonly SourceRecord[]>
  /** Deletes every bar. */
  clear(): Promise<void>
  /** A stored note by name; null if there is none. */
  note(name: string): Promise<string | null>
  /** Stores a note, replacing the last one of that name. */
  setNote(name: string, value: string): Promise<void>
}

export interface AddOptions {
  /** Bad prints among the bars, to be stored with their corrections. */
  readonly misprints?: readonly BadPrint[]
  /** When all bars became known, or each of them by its open, epoch seconds. The default is the close of each bar. */
  readonly knownAt?: number | ((time: number) => number)
  /** The venues behind each bar. */
  readonly sources?: BarSources
}

export interface QualityNote {
  /** Open of the bar, epoch seconds. */
  readonly t_open: number
  readonly kind: string
  readonly detail: string
}

export interface Extent {
  readonly first: number
  readonly last: number
}

/** Creates a store on a database or on a transaction. */
export function createBarStore(db: Database): BarStore {
  return new DatabaseBarStore(db)
}

class DatabaseBarStore implements BarStore {
  readonly #db: Database
  /** Every series, once they have been read. */
  #list: Series[] | null = null

  constructor(db: Database) {
    this.#db = db
  }

  async series(venue: string, symbol: string, intervalSeconds: number): Promise<Series> {
    const key = { venue, symbol, interval_seconds: intervalSeconds }
    await this.#db('market_series').insert(key).onConflict(['symbol', 'interval_seconds', 'venue']).ignore()
    this.#list = null
    return this.#db<Series>('market_series').where(key).first(SERIES) as Promise<Series>
  }

  async published(venue: string, symbol: string, intervalSeconds: number): Promise<Series> {
    const key = { symbol, interval_seconds: intervalSeconds }
    if (
      !(await this.#db('market_series')
        .where({ ...key, venue })
        .first('id'))
    ) {
      const windows = this.#db.raw(
        '(select count(*) from market_windows w where w.series = market_series.id) as windows',
      )
      const longest = (await this.#db('market_series').where(key).orderBy('windows', 'desc').first('id', windows)) as
        { id: number } | undefined
      if (longest) await this.#db('market_series').where('id', longest.id).update({ venue })
    }
    return this.series(venue, symbol, intervalSeconds)
  }

  within(db: Database): BarStore {
    return new DatabaseBarStore(db)
  }

  async allSeries(): Promise<readonly Series[]> {
    this.#list ??= await this.#db<Series>('market_series').select(SERIES).orderBy('id')
    return this.#list
  }

  async add(series: Series, bars: Columns, { misprints = [], knownAt, sources }: AddOptions = {}): Promise<void> {
    const wrong = new Map(misprints.map((print) => [print.index, print]))
    const interval = series.interval_seconds
    const known = typeof knownAt === 'function' ? knownAt : (time: number): number => knownAt ?? time + interval
    const bulkInsert = bulkInsertSql(this.#db, 'market_bars', COLUMNS)
    for (let start = 0; start < bars.count; start += CHUNK) {
      const rows: (number | null)[][] = []
      for (let i = start; i < Math.min(bars.count, start + CHUNK); i += 1) {
        const time = bars.time[i]!
        const print = wrong.get(i)
        const proved = print ? bars.time[print.provedBy]! + interval : null
        const { open, high, low, close, volume, state } = bars
        rows.push([
          time,
          open[i]!,
          high[i]!,
          low[i]!,
          close[i]!,
          volume[i]!,
          state[i]!,
          known(time),
          proved,
          sources?.venues[i] ?? null,
          sources?.spread_bps[i] ?? null,
        ])
        const flat = print?.price
        if (flat !== undefined) rows.push([time, flat, flat, flat, flat, volume[i]!, REVISED, proved, null, null, null])
      }
      await this.#db.raw(bulkInsert, [series.id, JSON.stringify(rows)])
    }
  }

  async has(series: Series, { time, open, high, low, close }: BarRow): Promise<boolean> {
    const key = { series: series.id, t_open: time, open, high, low, close }
    return (await this.#db('market_bars').where(key).first('t_open')) !== undefined
  }

  async read(series: Series, from: number, to: number, asOf: number): Promise<Columns> {
    const end = Math.min(to, asOf - series.interval_seconds + 1)
    const rows = (await this.#db('market_bars')
      .select('t_open', 'open', 'high', 'low', 'close', 'volume', 'state')
      .where('series', series.id)
      .where('t_open', '>=', from)
      .where('t_open', '<', end)
      .where('known_at', '<=', asOf)
      .where((current) => void current.whereNull('superseded_at').orWhere('superseded_at', '>', asOf))
      .orderBy('t_open')) as (BarRow & { t_open: number; state: number })[]
    const out = createColumns(Math.max(16, rows.length))
    for (const row of rows) out.add(row.t_open, row.open, row.high, row.low, row.close, row.volume, row.state)
    return out.end()
  }

  async readFirst(series: Series, from: number, to: number): Promise<Columns & BarSources> {
    const rows = (await this.#db('market_bars')
      .select('t_open', 'open', 'high', 'low', 'close', 'volume', 'state', 'venues', 'spread_bps')
      .where('series', series.id)
      .where('t_open', '>=', from)
      .where('t_open', '<', to)
      .whereNot('state', REVISED)
      .orderBy('t_open')) as (BarRow & { t_open: number; state: number; venues: number; spread_bps: number })[]
    const out = createColumns(Math.max(16, rows.length))
    for (const row of rows) out.add(row.t_open, row.open, row.high, row.low, row.close, row.volume, row.state)
    return {
      ...out.end(),
      venues: Uint32Array.from(rows, (row) => row.venues ?? 0),
      spread_bps: Float32Array.from(rows, (row) => row.spread_bps ?? NaN),
    }
  }

  async extent(series: Series, asOf = Number.MAX_SAFE_INTEGER): Promise<Extent | null> {
    // Two statements: SQLite reads the whole series for a minimum and a maximum in one.
    const [first, last] = [await this.#end(series, asOf, 'asc'), await this.#end(series, asOf, 'desc')]
    return first !== null && last !== null ? { first, last } : null
  }

  last(series: Series, asOf = Number.MAX_SAFE_INTEGER): Promise<number | null> {
    return this.#end(series, asOf, 'desc')
  }

  async #end(series: Series, asOf: number, direction: 'asc' | 'desc'): Promise<number | null> {
    const found = await this.#db<{ t_open: number }>('market_bars')
      .where('series', series.id)
      .where('t_open', '<=', asOf - series.interval_seconds)
      .orderBy('t_open', direction)
      .first('t_open')
    return found?.t_open ?? null
  }

  async noteQuality(series: Series, notes: readonly QualityNote[]): Promise<void> {
    if (notes.length === 0) return
    await this.#db.transaction(async (transaction) => {
      const added = (await transaction('market_quality')
        .insert(notes.map((note) => ({ series: series.id, ...note })))
        .onConflict(['series', 't_open', 'kind'])
        .ignore()
        .returning('t_open')) as readonly unknown[]
      const total = transaction.raw('quality_notes + ?', [added.length])
      await transaction('market_series').where({ id: series.id }).update({ quality_notes: total })
    })
  }

  async qualityNotes(): Promise<number> {
    const rows = (await this.#db('market_series').select('quality_notes as n')) as { n: number }[]
    return rows.reduce((sum, { n }) => sum + n, 0)
  }

  async noteRejected(venue: string, symbol: string, rows: readonly RejectedRow[], seenAt: number): Promise<void> {
    for (const { time, reason, row } of rows)
      await this.#db('market_rejected_rows')
        .insert({ venue, symbol, t_open: time ?? 0, reason, row, seen_at: seenAt })
        .onConflict(['venue', 'symbol', 't_open', 'reason'])
        .merge(['row', 'seen_at'])
    if (rows.length === 0) return
    // By time: a row that comes again keeps its id, and PostgreSQL leaves out the ids that such rows would have had.
    const newest = 'select id from market_rejected_rows order by seen_at desc, id desc limit ?'
    await this.#db('market_rejected_rows').whereRaw(`id not in (${newest})`, [KEPT_REJECTED]).delete()
  }

  async rejectedRows(): Promise<number> {
    const found = (await this.#db('market_rejected_rows').count({ n: '*' }).first()) as { n: number }
    return found.n
  }

  async keepHealth({ source, item, ...record }: SourceRecord): Promise<void> {
    const key = { venue: source, symbol: item }
    if (record.failures === 0) await this.#db('market_venue_health').where(key).delete()
    else
      await this.#db('market_venue_health')
        .insert({ ...key, ...record })
        .onConflict(['venue', 'symbol'])
        .merge()
  }

  async health(): Promise<readonly SourceRecord[]> {
    const rows = (await this.#db('market_venue_health').select()) as (SourceRecord & {
      venue: string
      symbol: string
    })[]
    return rows.map(({ venue, symbol, ...record }) => ({ ...record, source: venue, item: symbol }))
  }

  async clear(): Promise<void> {
    for (const table of ['market_bars', 'market_windows', 'market_quality', 'market_series'])
      await this.#db(table).delete()
    this.#list = null
  }

  async note(name: string): Promise<string | null> {
    const row = (await this.#db('market_notes').where({ name }).first('value')) as { value: string } | undefined
    return row?.value ?? null
  }

  async setNote(name: string, value: string): Promise<void> {
    await this.#db('market_notes').insert({ name, value }).onConflict('name').merge()
  }
}
