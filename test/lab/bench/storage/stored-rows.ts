/**
 * The size of the rows of products and payments in a database: fills each table with rows of their real shape, through the
 * code that writes them, and divides. Indexes are included.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Migration } from 'tollgate/plugin'
import { Client } from 'pg'
import { openJournal } from '../../../../gateway/payments/journal/open-journal.ts'
import { openDatabase, type OpenDatabase } from '../../../../gateway/stores/database.ts'
import { migrate } from '../../../../gateway/stores/migrations.ts'
import { PerpetualBookStore } from '../../../../plugins/funding/perpetual-books.ts'
import { createRateStore, migrations as fundingTables } from '../../../../plugins/funding/rate-store.ts'
import { openSampleRates } from '../../../../plugins/funding/sample-rates.ts'
import { storeSettlements } from '../../../../plugins/funding/settlement-store.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'
import { createBarStore, migrations as marketTables } from '../../../../plugins/market/bar-store.ts'
import { createColumns } from '../../../../plugins/market/bars.ts'
import { KeptBooks } from '../../../../plugins/market/order-books/kept-books.ts'
import { makeBook } from '../../../../plugins/market/order-books/sample-books.ts'
import { encodeSnapshots, migrations as regimeTables, openSnapshots } from '../../../../plugins/regime/snapshots.ts'
import { paymentIn } from '../../../contracts/journal-payments.ts'
import { openSchema } from '../../../contracts/postgres.ts'

const YEAR = 365 * 86_400
const START = Date.UTC(2026, 2, 2) / 1000

export interface Subject {
  readonly name: string
  readonly plugin: string
  readonly tables: readonly Migration[]
  /** Rows that are written to measure one. */
  readonly rows: number
  /** Rows of one symbol (or, for what has no symbol, of all) in a year, or as many as are ever kept. */
  readonly held: number
  /** Unit of `held`. */
  readonly per:
    | 'symbol and year'
    | 'symbol, kept 30 days'
    | 'year'
    | 'gateway'
    | 'gateway, kept 6 hours'
    | 'gateway, kept 8 days'
    | 'million sales'
  /** Writes what is there before, which is not counted. */
  prepare?(db: OpenDatabase): Promise<void>
  write(db: OpenDatabase, rows: number): Promise<void>
}

const market = { plugin: 'market', tables: marketTables }
const funding = { plugin: 'funding', tables: fundingTables }

/** Tables measured beside the POTUS feeds (potus-rows.ts) and payments. */
export const SUBJECTS: readonly Subject[] = [
  {
    ...market,
    name: 'minute bars',
    rows: 60_000,
    held: YEAR / 60,
    per: 'symbol and year',
    async write(db, rows) {
      const store = createBarStore(db)
      const series = await store.series('median', 'BTC-USD', 60)
      const random = seededRandom(1)
      const bars = createColumns()
      for (let i = 0; i < rows; i += 1) {
        const [open, close] = [90_000 + 100 * random(), 90_000 + 100 * random()]
        bars.add(START + 60 * i, open, Math.max(open, close) + random(), Math.min(open, close) - random(), close, 40 * random(), 0) // prettier-ignore
      }
      const sources = {
        venues: new Uint32Array(rows).fill(13),
        spread_bps: Float32Array.from({ length: rows }, random),
      }
      await store.add(series, bars.end(), { sources })
    },
  },
  {
    name: 'regime snapshots',
    plugin: 'regime',
    tables: regimeTables,
    rows: 60_000,
    held: YEAR / 60,
    per: 'symbol and year',
    async write(db, rows) {
      const random = seededRandom(2)
      const snapshots = Array.from({ length: rows }, (_, i) => ({
        as_of: START + 60 * i,
        volatile: 0 as const,
        confidence: random(),
        position_scalar: 1.5 * random(),
        forecast_vol: random(),
        boundary_vol: random(),
        realized_vol_1h: random(),
        model: 1,
        forecast_vol_mean: random(),
        forecast_vol_median: random(),
        forecast_vol_p10: random(),
        forecast_vol_p90: random(),
        reference_vol: random(),
        since: START,
        bars_used: 259_200,
        known_at: START + 60 * i,
        origin: 1 as const,
        computed_at: START + 60 * i + 3,
        venues: 13,
        spread_bps: random(),
      }))
      await (await openSnapshots(db, 'BTC-USD', 'online')).add(encodeSnapshots(snapshots))
    },
  },
  {
    ...market,
    name: 'kept order books',
    rows: 2000,
    held: (2 * 30 * 86_400) / 300,
    per: 'symbol, kept 30 days',
    async write(db, rows) {
      const symbol = { symbol: 'BTC-USD', price: 90_000, volatility: 0.5, turnover: 2e9, tick: 0.01 } as const
      const books = new KeptBooks(db)
      for (let i = 0; i < rows; i += 1) {
        const time = START + 300 * (i >> 1) + 30 * (i & 1)
        const book = makeBook({ ...symbol, session: '24x7' }, START + 60 * i, 90_000)
        await books.keep('BTC-USD', { ...book, venue: 'coinbase', time })
      }
    },
  },
  {
    ...funding,
    name: 'settled funding rates',
    rows: 20_000,
    // Three venues settle every hour, five every eight hours.
    held: 3 * 8760 + 5 * 1095,
    per: 'symbol and year',
    async write(db, rows) {
      const contract = { venue: 'hyperliquid', instrument: 'BTC', symbol: 'BTC' } as const
      const settlements = Array.from({ length: rows }, (_, i) => ({
        ...contract,
        time: START + 3600 * i,
        rate: '0.0000125',
      }))
      const held = { ...contract, held_from: START, reached: START + 3600 * rows, updated_at: START, error: null }
      await storeSettlements(db, settlements, held)
    },
  },
  {
    ...funding,
    name: 'order books of perpetual contracts',
    rows: 2000,
    held: (8 * 10 * 6 * 3600) / 300,
    per: 'gateway, kept 6 hours',
    async write(db, rows) {
      const books = new PerpetualBookStore(db)
      for (let i = 0; i < rows; i += 1) {
        const symbol = { symbol: 'BTC-USD', price: 90_000, volatility: 0.5, turnover: 4e9, tick: 0.1 } as const
        const book = makeBook({ ...symbol, session: '24x7' }, START + 60 * i, 90_000)
        await books.add('binance', 'BTCUSDT', START + 300 * i, book)
      }
    },
  },
  {
    ...funding,
    name: 'polls of funding rates',
    rows: 400,
    held: 8 * 6 * 60,
    per: 'gateway, kept 6 hours',
    async write(db, rows) {
      const store = createRateStore(db)
      const source = openSampleRates()
      for (let i = 0; i < rows; i += 1) {
        const [state] = await source.at(START + 60 * i)
        // A venue lists some 300 contracts, sixteen times what the sample has.
        const few = state!.poll!.rates
        const rates = Array.from({ length: 300 }, (_, n) => ({ ...few[n % few.length]!, instrument: `COIN${n}USDT` }))
        await store.add('binance', START + 60 * i, { ...state!.poll!, rates })
      }
    },
  },
]

/** Where a database is measured. */
export interface Place {
  readonly db: OpenDatabase
  bytes(): Promise<number>
  drop(): Promise<void>
}

export async function inSqlite(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'storage-'))
  const file = join(folder, 'products.sqlite')
  const db = openDatabase({ file })
  // Only the size matters, and waiting for the disk takes longer than the writes.
  await db.raw('pragma synchronous = off')
  return {
    db,
    async bytes() {
      await db.raw('pragma wal_checkpoint(truncate)')
      return statSync(file).size
    },
    async drop() {
      await db.destroy()
      rmSync(folder, { recursive: true })
    },
  }
}

export async function inPostgres(): Promise<Place | null> {
  const schema = await openSchema()
  if (!schema) return null
  const db = openDatabase({ url: schema.url })
  return {
    db,
    bytes: () => schemaBytes(schema.url),
    async drop() {
      await db.destroy()
      await schema.drop()
    },
  }
}

/** All tables and indexes of a schema. */
async function schemaBytes(connectionString: string): Promise<number> {
  const client = new Client({ connectionString })
  await client.connect()
  const { rows } = await client.query<{ bytes: string }>(
    `select coalesce(sum(pg_total_relation_size(c.oid)), 0) as bytes from pg_class c
      join pg_namespace n on n.oid = c.relnamespace where n.nspname = current_schema() and c.relkind = 'r'`,
  )
  await client.end()
  return Number(rows[0]!.bytes)
}

/** Bytes of a row, without what empty tables take. */
export async function bytesPerRow({ plugin, tables, rows, prepare, write }: Subject, place: Place): Promise<number> {
  try {
    await migrate(place.db, plugin, tables)
    await prepare?.(place.db)
    const empty = await place.bytes()
    await write(place.db, rows)
    return ((await place.bytes()) - empty) / rows
  } finally {
    await place.drop()
  }
}

const SALES = 3000

/** Bytes of a settled payment in the journal, with all of its changes and its answer. */
async function bytesPerSale(
  address: { file: string } | { url: string },
  bytes: () => Promise<number>,
): Promise<number> {
  const journal = await openJournal(address)
  const empty = await bytes()
  let left = SALES
  const buy = async (): Promise<void> => {
    while (left-- > 0) await journal.delivered(await paymentIn(journal, 'settled'))
  }
  await Promise.all(Array.from({ length: 32 }, buy))
  const filled = await bytes()
  await journal.close()
  return (filled - empty) / SALES
}

export interface Measured {
  readonly name: string
  readonly per: string
  readonly held: number
  readonly sqlite: number
  readonly postgres: number | null
}

export async function measureSales(): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'storage-'))
  const file = join(folder, 'journal.sqlite')
  const schema = await openSchema()
  try {
    const all = ['', '-wal'].map((end) => file + end)
    const size = async (): Promise<number> => all.reduce((sum, one) => sum + (statSync(one, { throwIfNoEntry: false })?.size ?? 0), 0) // prettier-ignore
    const sqlite = await bytesPerSale({ file }, size)
    const postgres = schema && (await bytesPerSale({ url: schema.url }, () => schemaBytes(schema.url)))
    return { name: 'payments in the journal', per: 'million sales', held: 1e6, sqlite, postgres }
  } finally {
    rmSync(folder, { recursive: true })
    await schema?.drop()
  }
}
