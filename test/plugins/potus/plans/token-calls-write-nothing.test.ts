/** A call with a token costs the service little: it does not query the journal or the settler, and writes nothing. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Journal } from '../../../../gateway/payments/journal/journal.ts'
import { openDatabase, type OpenDatabase } from '../../../../gateway/stores/database.ts'
import { ask } from '../../../support/agent.ts'
import { feedCatalog, openFeedGateway, type FeedGateway } from '../feed-gateway.ts'

const FEEDS = ['live', 'events/1m', 'events/15m', 'archive', 'event/latest', 'entities', 'feeds']
const FOREVER = 8.64e15

describe('1,000 calls with a token', function () {
  this.timeout(180_000)
  let dataDir: string
  let gateway: FeedGateway
  /** The databases as another process sees them. */
  let products: OpenDatabase
  let ledger: OpenDatabase
  let journalQueries = 0
  /** Counts every query of the journal. */
  const countQueries = (journal: Journal): Journal =>
    new Proxy(journal, {
      get(target, name, self) {
        const value: unknown = Reflect.get(target, name, self)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          journalQueries += 1
          return (value as (...args: unknown[]) => unknown).apply(target, args)
        }
      },
    })
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'tollgate-unmetered-'))
    const overrides = { journal: countQueries, reconcileSeconds: 3600, inMemory: false }
    gateway = await openFeedGateway(feedCatalog(), overrides, { DATA_DIR: dataDir })
    const [journalFile, productsFile] = ['journal', 'products'].map((name) =>
      files().find((file) => file.endsWith(`${name}.sqlite`)),
    ) as [string, string]
    ledger = openDatabase({ file: journalFile })
    products = openDatabase({ file: productsFile })
  })
  after(async () => {
    await Promise.all([ledger.destroy(), products.destroy()])
    await gateway.close()
    rmSync(dataDir, { recursive: true, force: true })
  })

  /** All files on disk except the shared memory of SQLite, which readers change too. */
  const files = (): string[] =>
    readdirSync(dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('-shm'))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
  /** A digest of each file except the journal's, to which the process writes a sign of life at intervals. */
  const bytes = (): string[] =>
    files()
      .filter((file) => !basename(file).startsWith('journal.'))
      .map((file) => `${file} ${createHash('sha256').update(readFileSync(file)).digest('hex')}`)
  async function entries(): Promise<Record<string, unknown>> {
    const tables = (await ledger('sqlite_master').where({ type: 'table' }).pluck('name')) as string[]
    const compared = tables.filter((name) => name !== 'payment_owners')
    return Object.fromEntries(await Promise.all(compared.map(async (name) => [name, (await ledger(name)) as unknown])))
  }
  /**
   * Stops everything that writes without a call: jobs, and work for which another process now holds the lease. Waits
   * until the purchases are written too: their deliveries, and the counts that the gateway collects for some seconds.
   */
  async function stopBackgroundWork(purchases: number): Promise<void> {
    await products('leases').update({ holder: 'elsewhere/1/other', ends_at: FOREVER })
    const successor = { ...gateway.gateway.current }
    await gateway.gateway.current.stopJobs(successor)
    while ((await ledger('payment_deliveries')).length < purchases) await sleep(10)
    while ((await products('funnel_counts').where({ kind: 'delivered' })).length < purchases) await sleep(10)
  }

  it('query neither the journal nor the settler, and write nothing to any database file', async () => {
    const tokens = [await gateway.token('live/30d'), await gateway.token('archive/30d')] as const
    await stopBackgroundWork(tokens.length)
    const [digests, rows, queries, settlements] = [
      bytes(),
      await entries(),
      journalQueries,
      gateway.settler.calls.length,
    ]
    const statuses = new Map<string, number>()
    for (let round = 0; round < 100; round += 1)
      await Promise.all(
        Array.from({ length: 10 }, async (_, at) => {
          const path = FEEDS[at] ?? 'archive'
          const headers = { 'x-service-token': tokens[at < FEEDS.length ? 0 : 1] }
          const query = path.startsWith('event/') || path === 'feeds' ? '' : '?limit=1'
          const response = await ask(`${gateway.url}/v1/potus/${path}${query}`, { headers })
          await response.arrayBuffer()
          statuses.set(`${path} ${response.status}`, (statuses.get(`${path} ${response.status}`) ?? 0) + 1)
        }),
      )
    expect(Object.fromEntries(statuses)).to.deep.equal(
      Object.fromEntries(FEEDS.map((path) => [`${path} 200`, path === 'archive' ? 400 : 100])),
    )
    expect([journalQueries, gateway.settler.calls.length]).to.deep.equal([queries, settlements])
    expect(bytes()).to.deep.equal(digests)
    expect(await entries()).to.deep.equal(rows)
    // A payment does write, so the comparison above can fail.
    await gateway.token('archive/30d')
    while (bytes().join() === digests.join()) await sleep(10)
    expect(bytes()).not.to.deep.equal(digests)
    expect(await entries()).not.to.deep.equal(rows)
  })
})
