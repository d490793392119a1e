/** What the products ask of the database is found by an index, however long their tables have grown. */
import { expect } from 'chai'
import { Client } from 'pg'
import type { Database } from 'tollgate/plugin'
import type { OpenDatabase } from '../../gateway/stores/database.ts'
import { migrate } from '../../gateway/stores/migrations.ts'
import { migrations as auditTables, openReportStore } from '../../plugins/audit/report-store.ts'
import { DirectoryStore } from '../../plugins/directory/directory-store.ts'
import { migrations as directoryTables } from '../../plugins/directory/directory-tables.ts'
import { idOf } from '../../plugins/directory/listing.ts'
import { UNVISITED } from '../../plugins/directory/liveness.ts'
import { readBazaar } from '../../plugins/directory/sources/bazaar.ts'
import { forgetFormerDays } from '../../plugins/founding/daily-shares.ts'
import { migrations as foundingTables, openMembers } from '../../plugins/founding/members.ts'
import { PerpetualBookStore } from '../../plugins/funding/perpetual-books.ts'
import { createRateStore, migrations as fundingTables } from '../../plugins/funding/rate-store.ts'
import { createSettlementSource, pruneSettlements, storeSettlements } from '../../plugins/funding/settlement-store.ts'
import { BackfillPlan, seriesWithDueGaps, unfinishedSeries } from '../../plugins/market/backfill.ts'
import { createBarStore, migrations as marketTables } from '../../plugins/market/bar-store.ts'
import { createColumns } from '../../plugins/market/bars.ts'
import { KeptBooks } from '../../plugins/market/order-books/kept-books.ts'
import { storeMinutes } from '../../plugins/market/stored-minutes.ts'
import { RememberedSnapshots } from '../../plugins/regime/remembered-snapshots.ts'
import {
  encodeSnapshots,
  migrations as regimeTables,
  newestSnapshots,
  openSnapshots,
} from '../../plugins/regime/snapshots.ts'
import { createReader } from '../../plugins/potus/store/event-reader.ts'
import { prunePolls } from '../../plugins/potus/store/poll-retention.ts'
import { migrations as potusTables } from '../../plugins/potus/store/tables.ts'
import { DATABASES } from '../contracts/databases.ts'
import { openSchema } from '../contracts/postgres.ts'
import { openDatabase } from '../../gateway/stores/database.ts'
import { listingItem, NOON } from './directory/online-directory.ts'
import { rssOf, LIVE, openTestFeed, postId, postsOf } from './potus/test-feed.ts'
import { snapshotAt } from './regime/snapshot.ts'

/** Tables that grow with time. Others have a row per series, source or note. */
const GROWING = new Set([
  'audit_reports',
  'founding_members',
  'founding_sign_ups',
  'regime_snapshots',
  'market_bars',
  'market_windows',
  'market_quality',
  'market_kept_books',
  'directory_records',
  'directory_listings',
  'directory_entries',
  'directory_visits',
  'funding_polls',
  'funding_books',
  'funding_settlements',
  'potus_polls',
  'potus_events',
  'potus_versions',
  'potus_mentions',
  'potus_engagement',
])
/** Columns with few values: an index on nothing else finds a large part of the table. */
const COARSE = ['series', 'source', 'status', 'venue', 'outcome', 'ingest', 'superseded_at', 'hidden', 'alive']
/** Windows of bars that wait to be fetched. They are few, whatever the length of the history. */
const SMALL = 'market_windows_unfinished'
const START = Date.UTC(2026, 4, 1)
const MINUTE = 60_000

const TABLES = {
  audit: auditTables,
  founding: foundingTables,
  market: marketTables,
  regime: regimeTables,
  directory: directoryTables,
  funding: fundingTables,
  potus: potusTables,
}

async function useBars(db: OpenDatabase): Promise<void> {
  const store = createBarStore(db)
  const series = await store.series('venue', 'BTC-USD', 60)
  const database: Database = db
  const plan = new BackfillPlan({ db, series, now: () => 1e6 })
  await plan.extend(0, 10 * 86_400, 0)
  for (let window = await plan.next('open'); window; window = await plan.next('open')) {
    const [from, to] = [window.t_from, window.t_from + 600]
    const bars = createColumns()
    for (let time = from; time < to; time += 60) if (time !== from + 60) bars.add(time, 1, 1, 1, 1, 1, 0)
    const sources = { venues: new Uint32Array(9).fill(3), spread_bps: new Float32Array(9) }
    const found = { bars: bars.end(), sources, holes: [{ from: from + 60, to: from + 120 }], decidedTo: to, notes: [] }
    await database.transaction(async (transaction) => {
      await storeMinutes(found, { db: transaction, series, knownAt: () => 1e6, now: 1e6, isLate: false })
      await plan.within(transaction).fetched(window, found.holes)
      await plan.within(transaction).reopen(window)
    })
  }
  await plan.addGaps([{ from: 0, to: 3600 }])
  await plan.next('gap')
  await plan.progress()
  await plan.awaited()
  await plan.end()
  await unfinishedSeries(db, [series])
  await seriesWithDueGaps(db, 1e6)
  await store.readFirst(series, 0, 3600)
  await store.noteRejected('venue', 'BTC-USD', [{ time: 60, reason: 'not_a_number', row: '[]' }], 60)
  await store.extent(series)
  await store.extent(series, 3600)
  await store.last(series, 3600)
  await store.noteQuality(series, [{ t_open: 60, kind: 'venue_difference', detail: '' }])
  await store.qualityNotes()
}

async function useKeptBooks(db: OpenDatabase): Promise<void> {
  const books = new KeptBooks(db, { everySeconds: 300, keepDays: 1 })
  const [bids, asks] = [[[99, 1] as const], [[101, 1] as const]]
  for (const time of [1000, 1030, 500_000]) await books.keep('BTC-USD', { venue: 'kraken', time, bids, asks })
  const minutes = new Map([[499_980, { low: 1, high: 2 }]])
  await books.refute('BTC-USD', { from: 400_000, minutes, tolerance: 0.01 })
  await books.keep('BTC-USD', { venue: 'kraken', time: 600_000, bids, asks })
  await books.prune(new AbortController().signal)
}

async function useReports(db: OpenDatabase): Promise<void> {
  const reports = openReportStore(db, { perClient: 2, total: 2 })
  for (const rid of ['a', 'b', 'c']) {
    await reports.fullUntil('somebody', new Date(START))
    await reports.save(rid, new Date(START), {}, { client: 'somebody' })
  }
  await reports.find('c', new Date(START))
  await reports.expire(new Date(START))
  await reports.remove('c')
}

async function useSignUps(db: OpenDatabase): Promise<void> {
  const members = openMembers(db)
  await members.join('ada@example.org', 'pricing', new Date(START), 'somebody')
  await members.leave('a')
  await forgetFormerDays(db, new Date(START))
}

async function useSnapshots(db: OpenDatabase): Promise<void> {
  const snapshots = await openSnapshots(db, 'BTC-USD', 'sample')
  await snapshots.add(encodeSnapshots([60, 120, 180].map((at) => snapshotAt(at))))
  await snapshots.fillBefore(60)
  await snapshots.missing()
  await snapshots.latest(120)
  await snapshots.between(['as_of', 'volatile'], { from: 0, to: 180, asOf: 180, limit: 10 })
  await (await newestSnapshots(db, 'BTC-USD'))?.extent()
  const remembered = new RememberedSnapshots({ db, stored: snapshots, label: { symbol: 'BTC-USD', hasOrigin: false } })
  for (const asOf of [0, 180]) {
    await remembered.latest(asOf)
    await remembered.page({ from: 0, to: 180, asOf, limit: 1 })
  }
  await snapshots.add(encodeSnapshots([snapshotAt(240)]))
  await remembered.latest(240)
}

async function useDirectory(db: OpenDatabase): Promise<void> {
  const store = new DirectoryStore(db)
  const urls = ['https://a.example.com/', 'https://b.example.com/']
  const page = (listed: readonly string[], sweep: number) => {
    const { listings } = readBazaar({ items: listed.map((url) => listingItem(url)) }, NOON)!
    return store.savePage({ source: 'a', rank: 1, listings, sweep, at: NOON + sweep, visitAt: NOON })
  }
  await page(urls, 1)
  const [id] = urls.map((url) => idOf({ url, tool: null })) as [string]
  await store.visited([{ id, health: UNVISITED, isGood: true, next: null }], NOON + 1)
  await store.facts()
}

async function useRates(db: OpenDatabase): Promise<void> {
  const store = createRateStore(db)
  await store.add('binance', 10, { error: 'refused' })
  await store.last('binance', 20)
  const contract = { venue: 'binance', instrument: 'BTCUSDT', symbol: 'BTC' } as const
  const held = { ...contract, held_from: 10, reached: 20, updated_at: 20, error: null }
  const settlements = [10, 20].map((time) => ({ ...contract, time, rate: '0.0001' }))
  await storeSettlements(db, settlements, held)
  const settled = createSettlementSource(db)
  const range = { symbols: ['BTC'], venues: [], from: 0, to: 30, limit: 10 }
  await settled.read({ ...range, after: null })
  await settled.read({ ...range, after: [10, 'binance', 'BTCUSDT'] })
  await settled.before(settlements[1]!)
  await pruneSettlements(db, 15, new AbortController().signal)
  const books = new PerpetualBookStore(db)
  for (const at of [10, 20]) await books.add('binance', 'BTCUSDT', at, { bids: [[99, 1]], asks: [[101, 1]] })
  await books.last('binance', 'BTCUSDT', 20)
  await books.forget(20, new AbortController().signal)
}

async function useNews(db: OpenDatabase): Promise<void> {
  const feed = await openTestFeed({ time: START, db })
  for (let n = 0; n < 5; n += 1) {
    feed.time += MINUTE
    const at = feed.time - 1000
    const shown = n === 3 ? [] : [{ key: 'a', text: `Copper ${Math.min(n, 2)}.`, at: START }]
    await feed.poll('wh.news', rssOf([...shown, { key: `b${n}`, text: `Steel ${n}.`, at }]))
    await feed.poll('truth.mirror', n === 4 ? '<html>' : postsOf([{ id: postId(at, n), text: 'Tariffs on oil.', at }]))
    await feed.poll('truth.mirror', null, { status: 304 })
  }
  feed.time += 3 * MINUTE
  for (const access of [LIVE, undefined])
    for (const [operation, query] of [
      ['getPotus', {}],
      ['getPotusLive', {}],
      ['getPotusLive', { since_seq: 2, kinds: 'social' }],
      ['getPotusLive', { topics: 'trade', min_relevance: 0.1 }],
      ['getPotusFeeds', {}],
    ] as const)
      await feed.ask(operation, { query, ...(access ? { access } : {}) })
  await createReader(db).countAll(feed.time)
  await prunePolls(db, { before: START, bodiesBefore: START }, new AbortController().signal)
  await prunePolls(db, { before: START, bodiesBefore: feed.time }, new AbortController().signal)
}

async function createTables(db: OpenDatabase): Promise<void> {
  for (const [name, steps] of Object.entries(TABLES)) await migrate(db, name, steps)
}

/** Runs what free routes, token calls and frequent jobs run, and returns the statements by their text. */
async function recordStatements(db: OpenDatabase): Promise<ReadonlyMap<string, readonly unknown[]>> {
  const statements = new Map<string, readonly unknown[]>()
  db.on('query', ({ sql, bindings }: { sql: string; bindings?: readonly unknown[] }) => {
    if (/^\s*(select|update|delete|with)\b/i.test(sql)) statements.set(sql, bindings ?? [])
  })
  for (const use of [useReports, useSignUps, useBars, useKeptBooks, useSnapshots, useDirectory, useRates, useNews])
    await use(db)
  db.removeAllListeners('query')
  expect(statements.size).to.be.greaterThan(60)
  return statements
}

const stopsEarly = (sql: string): boolean => /\blimit\b/i.test(sql)
const isCoarse = (columns: readonly string[]): boolean => columns.every((column) => COARSE.includes(column))

/**
 * True if a column has two bounds on the same side. SQLite takes the first for the search of the index, which reads millions
 * of rows if it is the wider one.
 */
function hasTwoBounds(sql: string): boolean {
  const bounds = [...sql.matchAll(/([`\w.]+) ([<>])=? \?/g)].map(([, column, side]) => `${column} ${side}`)
  return new Set(bounds).size < bounds.length
}

describe('every frequent statement of the products finds its rows by an index', function () {
  this.timeout(60_000)

  it('in SQLite', async () => {
    const store = (await DATABASES['memory']!())!
    try {
      await createTables(store.db)
      const statements = await recordStatements(store.db)
      const wrong: string[] = []
      for (const [sql, values] of statements) {
        const plan = (await store.db.raw(`explain query plan ${sql}`, [...values])) as { detail: string }[]
        for (const { detail } of plan) if (isSlowInSqlite(detail, sql)) wrong.push(`${detail}\n${sql}`)
        if (hasTwoBounds(sql)) wrong.push(`two bounds of one column\n${sql}`)
      }
      expect(wrong.join('\n\n')).to.equal('')
    } finally {
      await store.drop()
    }
  })

  it('in PostgreSQL', async function () {
    const schema = await openSchema()
    if (!schema) this.skip()
    const db = openDatabase({ url: schema.url })
    const client = new Client({ connectionString: schema.url })
    try {
      await client.connect()
      await createTables(db)
      // Once PostgreSQL has counted their few rows, by itself and at any time, every index is as good as another.
      const { rows: tables } = await client.query('select tablename from pg_tables where schemaname = current_schema()')
      for (const { tablename } of tables)
        await client.query(`alter table ${tablename} set (autovacuum_enabled = false)`)
      const statements = await recordStatements(db)
      await client.query(`insert into directory_records
        select (jsonb_populate_record(r, jsonb_build_object('id', r.id || n))).*
        from directory_records r, generate_series(1, 1000) n`)
      await client.query('analyze directory_records')
      // Other tables are small. A sequential scan that is left is one that no index can replace.
      await client.query('set enable_seqscan = off')
      const wrong: string[] = []
      for (const [sql, values] of statements) {
        const { rows } = await client.query({ text: `explain (format json) ${sql}`, values: [...values] })
        const [{ Plan: plan }] = rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }]
        for (const node of nodesOf(plan))
          if (isSlowInPostgres(node, sql)) wrong.push(`${node['Node Type']} ${node['Index Cond'] ?? ''}\n${sql}`)
      }
      expect(wrong.join('\n\n')).to.equal('')
    } finally {
      await client.end()
      await db.destroy()
      await schema.drop()
    }
  })
})

/** True if a step of SQLite's plan reads a growing table, or a large part of it, from end to end. */
function isSlowInSqlite(step: string, sql: string): boolean {
  const [, kind, name] = /^(SCAN|SEARCH) (\w+)/.exec(step) ?? []
  if (!kind || !GROWING.has(tableOf(name!, sql))) return false
  if (kind === 'SCAN') return !(stopsEarly(sql) && step.includes('USING'))
  const columns = [...(/\((.*)\)$/.exec(step)?.[1] ?? '').matchAll(/(\w+)[=<>]/g)].map(([, column]) => column!)
  return isCoarse(columns) && !stopsEarly(sql) && !step.includes(SMALL)
}

/** The table behind an alias. */
function tableOf(name: string, sql: string): string {
  return new RegExp(`[\`"]?(\\w+)[\`"]? as [\`"]?${name}\\b`, 'i').exec(sql)?.[1] ?? name
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly PlanNode[]
}

function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}

function isSlowInPostgres(node: PlanNode, sql: string): boolean {
  if (!GROWING.has(node['Relation Name'] ?? '')) return false
  if (node['Node Type'] === 'Seq Scan') return true
  if (!/^Index (Only )?Scan$/.test(node['Node Type']) || stopsEarly(sql) || node['Index Name'] === SMALL) return false
  const columns = [...(node['Index Cond'] ?? '').matchAll(/(\w+)\)?(?:::\w+)? (?:=|<|>|IS)/g)].map(
    ([, column]) => column!,
  )
  return isCoarse(columns)
}
