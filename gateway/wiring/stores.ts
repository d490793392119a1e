/** Databases, and what is kept in them. */
import { runAll } from './open-and-close.ts'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import { openJournal } from '../payments/journal/open-journal.ts'
import type { Journal } from '../payments/journal/journal.ts'
import { openPriceHistory, type PriceHistory } from '../payments/price-history.ts'
import type { Logger } from 'pino'
import { type DatabaseOptions, openDatabase, type OpenDatabase } from '../stores/database.ts'
import { type Kv, openKv } from '../stores/kv.ts'
import { createLease, type Lease } from '../stores/lease.ts'
import { serverError } from '../stores/postgres-error.ts'
import { checkSqliteFile, type FileCheck, openingError } from '../stores/sqlite-files.ts'
import type { Peers } from '../stores/peers.ts'
import { openRedis } from '../stores/redis.ts'
import { createRedisPeers } from '../stores/redis-peers.ts'
import { createRevocations, type Revocations } from '../tokens/revocations.ts'

/** Parts that tests replace. */
export interface StoreOptions {
  /** Wraps the journal, so that a test can stop a process exactly between two steps. */
  readonly journal?: (journal: Journal) => Journal
  /** Keeps the databases in memory. */
  readonly inMemory?: boolean
  /** Where products keep their tables. */
  readonly products?: DatabaseOptions
}

export interface Stores {
  readonly journal: Journal
  /** Everything but payments: products, prices, leases, counts. */
  readonly db: OpenDatabase
  readonly kv: Kv
  /** The other processes that use the same Redis; null without one. */
  readonly peers: Peers | null
  readonly lease: Lease
  readonly prices: PriceHistory
  readonly revocations: Revocations
  close(): Promise<void>
}

export async function openStores(
  { databaseUrl, dataDir, keyvUrl, baseUrl, quoteGraceSeconds: graceSeconds }: Config,
  clock: Clock,
  log: Logger,
  { inMemory = false, products, journal: wrap = (journal) => journal }: StoreOptions,
  onRecovered = (): void => {},
): Promise<Stores> {
  const place = (name: string) =>
    databaseUrl === null ? { file: inMemory ? ':memory:' : join(dataDir, name) } : { url: databaseUrl }
  const instance = randomUUID()
  const files =
    databaseUrl === null && !inMemory ? [join(dataDir, 'journal.sqlite'), join(dataDir, 'products.sqlite')] : []
  const damage = await checkFiles(files, log)
  const journal = wrap(
    await openJournal({ ...place('journal.sqlite'), instance, now: clock.wall, damage, onRecovered }).catch(
      (error: unknown) => {
        if (databaseUrl !== null) throw serverError(error)
        throw files[0] === undefined ? error : openingError(files[0], error)
      },
    ),
  )
  const db = openDatabase(products ?? place('products.sqlite'))
  const redis = keyvUrl === null ? null : openRedis(keyvUrl, log)
  const lease = createLease(db, instance, clock.wall)
  return {
    journal,
    db,
    kv: openKv(redis),
    peers: redis && createRedisPeers(redis, baseUrl),
    lease,
    prices: await openPriceHistory({ db, now: clock.wall, graceSeconds }),
    revocations: createRevocations(db, log),
    async close() {
      // On a disk that cannot be written to any more, it ends by itself.
      await lease
        .end()
        .catch((error: unknown) => log.warn({ err: error }, 'the leases of this process were not released'))
      await runAll([() => journal.close(), () => db.destroy(), () => redis?.close()])
    },
  }
}

/** Checks database files. Resolves with what is found in those too large to be checked before the gateway serves. */
async function checkFiles(files: readonly string[], log: Logger): Promise<{ readonly found: Promise<string | null> }> {
  const checks: FileCheck[] = []
  for (const file of files) checks.push(await checkSqliteFile(file))
  const found = Promise.all(checks.map(({ rest }) => rest)).then((errors) => {
    const error = errors.find((each) => each !== null)
    if (error) log.fatal({ err: error }, 'a database is damaged: no payment is taken')
    return error?.message ?? null
  })
  return { found: found.catch(() => null) }
}
