/** Stores the listings of the sources, the health that we observed, and the records merged from both. */
import type { Database } from 'tollgate/plugin'
import { type Body, columnsOf, merge, payeesOf, pricesOf, type SourceListing } from './directory-record.ts'
import type { EntryRow, ListingRow, SweepRow } from './directory-tables.ts'
import { idOf, type Listing } from './listing.ts'
import { type Health, UNVISITED } from './liveness.ts'

/** One page of a sweep. */
export interface SourcePage {
  readonly source: string
  readonly rank: number
  readonly listings: readonly Listing[]
  readonly sweep: number
  /** When we read it, epoch seconds. */
  readonly at: number
  /** When these services may first be visited; null for never. */
  readonly visitAt: number | null
}

/** A service whose visit is due. */
export interface DueVisit {
  readonly id: string
  readonly health: Health
  readonly body: Body
}

/** Reads for the visits of one run. Each leaves out the hosts that have had their share. */
const MOST_READS = 8

/** The result of a visit. */
export interface Visited {
  readonly id: string
  readonly health: Health
  /** Counts as a successful visit of the last 30 days. */
  readonly isGood: boolean
  /** When to visit again; null for never. */
  readonly next: number | null
}

/** The tables of the directory. Every change to a listing or to health refreshes the merged records in its transaction. */
export class DirectoryStore {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** Stores a page of listings. A later listing of the same source replaces an earlier one. */
  async savePage({ source, rank, listings, sweep, at, visitAt }: SourcePage): Promise<void> {
    const byId = new Map(listings.map((listing) => [idOf(listing), listing]))
    if (byId.size === 0) return
    await this.#db.transaction(async (trx) => {
      const entries = [...byId].map(([id, listing]) => ({
        id,
        first_seen: at,
        payees: '[]',
        payto_changed: null,
        health: JSON.stringify(UNVISITED),
        next_visit: listing.isTemplate || listing.url === null ? null : visitAt,
      }))
      await trx('directory_entries').insert(entries).onConflict('id').ignore()
      const rows = [...byId].map(([id, listing]) => ({
        source,
        id,
        rank,
        listing: JSON.stringify(listing),
        seen: at,
        sweep,
      }))
      await trx('directory_listings').insert(rows).onConflict(['source', 'id']).merge(['rank', 'listing', 'sweep'])
      await refreshRecords(trx, [...byId.keys()], at)
    })
  }

  /** Ends a complete sweep: removes the listings that it did not find. */
  async conclude(source: string, sweep: number, at: number): Promise<void> {
    const gone = (await this.#db('directory_listings').where({ source }).where('sweep', '<', sweep).select('id')) as {
      id: string
    }[]
    for (let start = 0; start < gone.length; start += 200) {
      const ids = gone.slice(start, start + 200).map(({ id }) => id)
      await this.#db.transaction(async (trx) => {
        await trx('directory_listings').where({ source }).whereIn('id', ids).delete()
        await refreshRecords(trx, ids, at)
      })
    }
  }

  /** Stores the outcome of a sweep. */
  async note(
    source: string,
    at: number,
    outcome: { rows: number; dropped: object; error: string | null },
  ): Promise<void> {
    const { rows, dropped, error } = outcome
    await this.#db('directory_sweeps').insert({ source, known_at: at, rows, error, dropped: JSON.stringify(dropped) })
  }

  /** Stores the health of services after their visits. */
  async visited(visits: readonly Visited[], at: number): Promise<void> {
    await this.#db.transaction(async (trx) => {
      const ids = visits.map(({ id }) => id)
      // Write first: in SQLite a transaction that begins with a read may be refused its writes.
      await trx('directory_visits').insert(visits.map(({ id, isGood }) => ({ id, at, ok: isGood ? 1 : 0 })))
      const entries = (await trx('directory_entries').whereIn('id', ids).orderBy('id').forUpdate()) as EntryRow[]
      const found = new Map(visits.map((visit) => [visit.id, visit]))
      const rows = entries.map((entry) => {
        const { health, next } = found.get(entry.id)!
        return { ...entry, health: JSON.stringify(health), next_visit: next }
      })
      await trx('directory_entries').insert(rows).onConflict('id').merge(['health', 'next_visit'])
      await trx('directory_visits')
        .whereIn('id', ids)
        .where('at', '<=', at - MONTH)
        .delete()
      await refreshRecords(trx, ids, at)
    })
  }

  /**
   * Services whose visit is due, longest overdue first, with a limit per host. A host with many due services cannot delay
   * other hosts.
   */
  async due(now: number, limit: number, perHost: number): Promise<readonly DueVisit[]> {
    const hosts = new Map<string, number>()
    const due = new Map<string, DueVisit>()
    for (let reads = 0; reads < MOST_READS && due.size < limit; reads += 1) {
      const full = [...hosts].flatMap(([host, count]) => (count >= perHost ? [host] : []))
      const rows = await this.#overdue(now, limit * 4, full)
      for (const row of rows) {
        const host = row.body.provider.host ?? ''
        const count = hosts.get(host) ?? 0
        if (count >= perHost || due.size >= limit || due.has(row.id)) continue
        hosts.set(host, count + 1)
        due.set(row.id, row)
      }
      if (rows.length < limit * 4) break
    }
    return [...due.values()]
  }

  /** Up to `limit` services whose visit is due, without those of the hosts that have had their share. */
  async #overdue(now: number, limit: number, full: readonly string[]): Promise<readonly DueVisit[]> {
    const query = this.#db('directory_entries')
      .join('directory_records', 'directory_records.id', 'directory_entries.id')
      .whereNull('directory_records.superseded_at')
      .where('next_visit', '<=', now)
      .orderBy('next_visit')
      .limit(limit)
    // The host is in the record only. The first read leaves none out, and few hosts are full after it.
    for (const host of full)
      void query.whereRaw(`directory_records.record not like ? escape '\\'`, [
        `%"host":"${host.replaceAll(/[\\%_]/g, '\\$&')}"%`,
      ])
    const rows = (await query.select('directory_entries.id as id', 'health', 'record')) as {
      id: string
      health: string
      record: string
    }[]
    return rows.map(({ id, health, record }) => ({
      id,
      health: JSON.parse(health) as Health,
      body: JSON.parse(record) as Body,
    }))
  }

  /** Origins of known services that were never visited, and those whose visit is due. */
  async origins(now: number, limit: number): Promise<string[]> {
    const rows = (await this.#db('directory_origins')
      .where('next_visit', '<=', now)
      .orderBy('next_visit')
      .limit(limit)) as {
      origin: string
    }[]
    return rows.map(({ origin }) => origin)
  }

  /** Adds origins to visit from `at` on, epoch seconds. Known ones stay as they are. */
  async addOrigins(origins: readonly string[], at: number): Promise<void> {
    const rows = [...new Set(origins)].map((origin) => ({ origin, next_visit: at }))
    if (rows.length > 0) await this.#db('directory_origins').insert(rows).onConflict('origin').ignore()
  }

  /** Sets when an origin is visited next, epoch seconds. */
  async postponeOrigin(origin: string, next: number): Promise<void> {
    await this.#db('directory_origins').where({ origin }).update({ next_visit: next })
  }

  /** The last sweep of a source and its last successful one, as known at a time. */
  async sweeps(source: string, asOf: number) {
    const known = () =>
      this.#db('directory_sweeps').where({ source }).where('known_at', '<=', asOf).orderBy('id', 'desc')
    const last = (await known().first()) as SweepRow | undefined
    const good = (await known().whereNull('error').first()) as SweepRow | undefined
    return { last: last ?? null, good: good ?? null }
  }

  /** A stored note by name, or null. */
  async noted<Value>(name: string): Promise<Value | null> {
    const row = (await this.#db('directory_notes').where({ name }).first()) as { value: string } | undefined
    return row ? (JSON.parse(row.value) as Value) : null
  }

  /** Stores a value under a name, replacing the last one. */
  async setNote(name: string, value: unknown): Promise<void> {
    await this.#db('directory_notes')
      .insert({ name, value: JSON.stringify(value) })
      .onConflict('name')
      .merge()
  }

  /** Empties the directory, for another recording. */
  async clear(): Promise<void> {
    for (const table of ['listings', 'entries', 'visits', 'records', 'sweeps', 'notes', 'origins', 'counts'])
      await this.#db(`directory_${table}`).delete()
  }

  /** The number of records listed now, and how many of them are alive. */
  async facts(): Promise<{ records: number; alive: number }> {
    const rows = await this.#db<{ name: string; n: number }>('directory_counts')
    const counted = (name: string): number => rows.find((row) => row.name === name)?.n ?? 0
    return { records: counted('records'), alive: counted('alive') }
  }

  /** Deletes versions that were superseded before a time. */
  async forget(before: number): Promise<void> {
    await this.#db('directory_records').where('superseded_at', '<', before).delete()
    await this.#db('directory_sweeps')
      .where('known_at', '<', before - MONTH)
      .delete()
  }
}

/** Visits are counted over this many seconds. */
const MONTH = 30 * 86_400

interface Current extends Listed {
  readonly id: string
  readonly record: string
}

/** The columns by which records are counted, 1 for true. */
interface Listed {
  readonly alive: number
  readonly hidden: number
}

interface Counted {
  readonly id: string
  readonly checks: number
  readonly ok: number
}

/**
 * Rebuilds the records of these services within the caller's transaction. A changed record supersedes its last version
 * at `at`. A service that no source lists any more gets no new version.
 */
async function refreshRecords(trx: Database, ids: readonly string[], at: number): Promise<void> {
  // Lock the rows, if the database can: a sweep and a visit of one service must see what the other wrote.
  const entries = (await trx('directory_entries').whereIn('id', ids).orderBy('id').forUpdate()) as EntryRow[]
  const listings = (await trx('directory_listings').whereIn('id', ids)) as ListingRow[]
  const current = (await trx('directory_records')
    .whereIn('id', ids)
    .whereNull('superseded_at')
    .select('id', 'record', 'alive', 'hidden')) as Current[]
  const visits = (await trx('directory_visits')
    .whereIn('id', ids)
    .where('at', '>', at - MONTH)
    .groupBy('id')
    .select('id')
    .count('* as checks')
    .sum('ok as ok')) as unknown as Counted[]
  const over: Current[] = []
  const fresh: NewRecord[] = []
  const paid: EntryRow[] = []
  for (const entry of entries) {
    const { id, first_seen } = entry
    const listed = listings
      .filter((row) => row.id === id)
      .map(({ listing, ...row }): SourceListing => ({ ...row, listing: JSON.parse(listing) as Listing }))
      .toSorted((a, b) => a.rank - b.rank || (a.source < b.source ? -1 : 1))
    const old = current.find((record) => record.id === id)
    if (listed.length === 0) {
      if (old) over.push(old)
      continue
    }
    const health = JSON.parse(entry.health) as Health
    const payees = keptPayees(entry, payeesOf(pricesOf(listed, health)), at)
    if (payees) paid.push({ ...entry, ...payees })
    const { payto_changed } = payees ?? entry
    const { checks = 0, ok = 0 } = visits.find((counted) => counted.id === id) ?? {}
    const body = merge(listed, { id, first_seen, health, payto_changed, checks_30d: checks, ok_30d: ok }, at)
    const record = JSON.stringify(body)
    if (old?.record === record) continue
    if (old) over.push(old)
    fresh.push({ id, known_at: at, superseded_at: null, record, first_seen, ...columnsOf(body) })
  }
  if (paid.length > 0) await trx('directory_entries').insert(paid).onConflict('id').merge(['payees', 'payto_changed'])
  if (over.length > 0)
    await trx('directory_records')
      .whereIn(
        'id',
        over.map(({ id }) => id),
      )
      .whereNull('superseded_at')
      .update({ superseded_at: at })
  if (fresh.length > 0) await trx.batchInsert('directory_records', fresh, 50)
  await addToCounts(trx, over, fresh)
}

/** Columns of a new version of a record. */
interface NewRecord extends Listed {
  readonly [column: string]: unknown
}

/** Adds the difference between earlier and later records to the kept counts. */
async function addToCounts(trx: Database, before: readonly Listed[], after: readonly Listed[]): Promise<void> {
  const shown = (records: readonly Listed[]) => records.filter(({ hidden }) => hidden === 0)
  const living = (records: readonly Listed[]) => shown(records).filter(({ alive }) => alive === 1)
  const rows = [
    { name: 'records', n: shown(after).length - shown(before).length },
    { name: 'alive', n: living(after).length - living(before).length },
  ]
  if (rows.every(({ n }) => n === 0)) return
  const sum = trx.raw('directory_counts.n + excluded.n')
  await trx('directory_counts').insert(rows).onConflict('name').merge({ n: sum })
}

/**
 * The `payTo` addresses and when they changed; null if there is nothing to store. A service that no longer states its
 * addresses has not changed them.
 */
function keptPayees(
  entry: EntryRow,
  payees: readonly string[],
  at: number,
): Pick<EntryRow, 'payees' | 'payto_changed'> | null {
  const before = JSON.parse(entry.payees) as string[]
  if (payees.length === 0 || payees.join() === before.join()) return null
  return { payees: JSON.stringify(payees), payto_changed: before.length > 0 ? at : entry.payto_changed }
}
