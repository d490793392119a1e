/** Finds records as known at a time, filtered and sorted. Pages do not shift when records are added. */
import {
  type Freshness,
  isPostgres,
  InvalidInput,
  type Database,
  readCursor,
  writeCursor,
  type DataMode,
} from 'tollgate/plugin'
import type { Body } from './directory-record.ts'
import type { DirectoryStore } from './directory-store.ts'
import { networkOf } from './payment-terms.ts'
import { formatSeconds } from '../lib/time/timestamps.ts'
import type { Directory, DirectoryQuery, DirectoryRecord, DirectorySource } from '../../schemas/types.d.ts'

interface Row {
  readonly id: string
  readonly known_at: number
  readonly record: string
  readonly key: string | number
}

interface Found {
  /** Time of the first page, epoch seconds. */
  readonly asOf: number
  readonly total: number
  readonly records: readonly DirectoryRecord[]
  readonly nextCursor: string | null
}

/** Stands for an unknown price, so that it sorts after all others. */
const UNPRICED = 1e15
/** Further words of a search are ignored. */
const MOST_WORDS = 10

/**
 * Finds one page of records. Times in the store are whole seconds. Throws InvalidInput for the cursor of another query, and for one
 * from before `kept`: the records of its time are deleted in part.
 */
async function find(db: Database, query: DirectoryQuery, now: number, kept: number): Promise<Found> {
  const place = query.cursor === undefined ? null : readCursor(query.cursor, query)
  if (place && place.asOf < kept)
    throw new InvalidInput('is too old: records of its time are no longer kept; begin again without it', [
      'query',
      'cursor',
    ])
  const asOf = Math.floor(Math.min(now, place?.asOf ?? Infinity))
  const { column, direction } = sorting(db, query.sort)
  const fitting = () => filtered(db, query, asOf)
  const rows = fitting().select('id', 'known_at', 'record', db.raw(`${column} as key`))
  if (place) {
    const [key, id] = place.key
    if (typeof id !== 'string' || !isKeyOf(query.sort, key))
      throw new InvalidInput('is not a cursor of this query', ['query', 'cursor'])
    const beyond = direction === 'asc' ? '>' : '<'
    void rows.whereRaw(`(${column} ${beyond} ? or (${column} = ? and id > ?))`, [key!, key!, id])
  }
  const found = (await rows.orderByRaw(`${column} ${direction}, id asc`).limit(query.limit + 1)) as unknown as Row[]
  const total = (await fitting().count('* as n').first()) as { n: number }
  const page = found.slice(0, query.limit)
  const last = page.at(-1)
  return {
    asOf,
    total: total.n,
    records: page.map(({ record, known_at }) => ({
      ...(JSON.parse(record) as Body),
      last_updated: formatSeconds(known_at),
    })),
    nextCursor: last && found.length > page.length ? writeCursor({ asOf, key: [last.key, last.id] }, query) : null,
  }
}

/** Whether a record can have this sort key. A cursor is the buyer's to write. */
function isKeyOf(sort: DirectoryQuery['sort'], key: unknown): boolean {
  if (sort === 'name') return typeof key === 'string'
  return sort.endsWith('first_seen') ? Number.isSafeInteger(key) : Number.isFinite(key)
}

/** Sort keys use only our own observations, so that no source can move its services up. */
function sorting(db: Database, sort: DirectoryQuery['sort']): { column: string; direction: 'asc' | 'desc' } {
  const direction = sort.startsWith('-') ? 'desc' : 'asc'
  const postgres = isPostgres(db)
  const columns = {
    name: postgres ? 'name_key collate "C"' : 'name_key',
    price: `coalesce(price_usd, ${UNPRICED})`,
    first_seen: 'directory_records.first_seen',
  }
  return { column: columns[sort.replace('-', '') as keyof typeof columns], direction }
}

function filtered(db: Database, query: DirectoryQuery, asOf: number) {
  const rows = db('directory_records')
    .where('known_at', '<=', asOf)
    .where((open) => void open.whereNull('superseded_at').orWhere('superseded_at', '>', asOf))
  const holds = (column: string, word: string): void => {
    void rows.whereRaw(`${column} like ? escape '\\'`, [`%${word.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`])
  }
  const { protocol, network, tag, q, kind, alive, max_price_usd } = query
  if (protocol) holds('protocols', `|${protocol}|`)
  if (network) holds('networks', `|${networkOf(network)}|`)
  if (tag) holds('tags', `|${tag}|`)
  if (kind) void rows.where({ kind })
  for (const word of (q ?? '').split(/\s+/).filter(Boolean).slice(0, MOST_WORDS)) holds('words', word)
  if (max_price_usd !== undefined) void rows.where('price_usd', '<=', max_price_usd)
  if (alive === undefined) void rows.where('hidden', 0)
  else void rows.where('alive', alive ? 1 : 0)
  return rows
}

export interface Asked {
  readonly query: DirectoryQuery
  readonly asOf: Date
  readonly dataMode: DataMode
  readonly shiftSeconds: number | null
  /** Seconds for which records that were superseded are kept; null if they are kept for good. */
  readonly keptSeconds: number | null
  readonly sources: readonly { readonly id: string; readonly enabled: boolean }[]
}

/** The answer to a query: one page of records and the state of every source. Throws InvalidInput like `find`. */
export async function answer(db: Database, store: DirectoryStore, asked: Asked): Promise<Directory> {
  const { query, dataMode, shiftSeconds } = asked
  const now = asked.asOf.getTime() / 1000
  const { asOf, total, records, nextCursor } = await find(db, query, now, now - (asked.keptSeconds ?? Infinity))
  const sources = await Promise.all(
    asked.sources.map(async ({ id, enabled }): Promise<DirectorySource> => {
      const { last, good } = await store.sweeps(id, asOf)
      const status = !enabled ? 'off' : last === null ? 'waiting' : last.error === null ? 'ok' : 'degraded'
      return {
        id,
        status,
        fetched_at: good ? formatSeconds(good.known_at) : null,
        age_seconds: good ? Math.max(0, Math.floor(asOf - good.known_at)) : null,
        rows: good?.rows ?? null,
        dropped: good ? (JSON.parse(good.dropped) as Record<string, number>) : {},
        error: last?.error ?? null,
      }
    }),
  )
  return {
    as_of: formatSeconds(asOf),
    data_mode: dataMode,
    ...(shiftSeconds === null ? {} : { replay: { shift_seconds: shiftSeconds } }),
    count: records.length,
    total,
    next_cursor: nextCursor,
    records: [...records],
    sources,
  }
}

/**
 * How fresh the listings are: the last good sweep of any source, the sources whose last sweep was good, and the share of
 * those swept that were good. Our own record is no listing. Made-up and recorded listings are as fresh as they can be.
 */
export async function listingsFreshness(
  store: DirectoryStore,
  { asOf, dataMode, sources }: Pick<Asked, 'asOf' | 'dataMode' | 'sources'>,
): Promise<Freshness> {
  const enabled = sources.filter((source) => source.enabled)
  const sweeps = await Promise.all(enabled.map(({ id }) => store.sweeps(id, Math.floor(asOf.getTime() / 1000))))
  const swept = sweeps.filter(({ last }) => last !== null)
  const good = swept.flatMap(({ good }) => good?.known_at ?? [])
  if (good.length === 0) return { newest: null, sources: 0, coverage: 0 }
  if (dataMode !== 'online') return { newest: asOf, sources: null, coverage: 1 }
  const alive = swept.filter(({ last }) => last?.error === null).length
  return { newest: new Date(Math.max(...good) * 1000), sources: alive, coverage: alive / swept.length }
}
