/**
 * The feeds and their plans in a real gateway, with every other priced route of the catalog. Tests only check that the
 * other routes refuse tokens, so slow products are replaced and no test waits for their data.
 */
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Overrides } from '../../../gateway/compose.ts'
import { readConfig } from '../../../gateway/config/config.ts'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { migrations } from '../../../plugins/potus/store/tables.ts'
import { buy, json } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { root } from './test-feed.ts'

type Json = Record<string, unknown>

const DAY = 86_400_000
/** At least as far as the sample reaches back. */
const HISTORY_DAYS = 32

/** Catalog documents that are copied unchanged. */
const UNCHANGED = ['potus.json', 'market.json', 'plans.json', 'service.json', 'documents.json']

/** Writes the whole catalog to a folder of its own. `change` may edit the documents that are copied. */
export function fullCatalog(change: (name: string, document: Json) => void = () => {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-feed-'))
  for (const file of readdirSync(join(root, 'catalog'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.json'))) {
    const document = JSON.parse(readFileSync(join(root, 'catalog', file), 'utf8')) as Json
    const name = basename(file)
    if (UNCHANGED.includes(name)) {
      if (name === 'documents.json') (document['settings'] as Json)['docs'] = '/openapi.json'
      change(name, document)
      writeFileSync(join(folder, name), JSON.stringify(document))
      continue
    }
    const priced = Object.entries((document['operations'] ?? {}) as Record<string, Json>).filter(
      ([, { price, retired }]) => price !== undefined && price !== 'free' && !retired,
    )
    if (priced.length === 0) continue
    const operations = priced.map(([id, { handler: _, fresh: __, ...operation }]) => [id, operation])
    const { plugin: _, uses: __, settings: ___, ...rest } = document
    const upstream = { url: 'http://127.0.0.1:9/nowhere' }
    writeFileSync(join(folder, name), JSON.stringify({ ...rest, upstream, operations: Object.fromEntries(operations) }))
  }
  return folder
}

/** Writes the same catalog without the market product, whose sample bars take long to generate. */
export function feedCatalog(change: (name: string, document: Json) => void = () => {}): string {
  const folder = fullCatalog(change)
  rmSync(join(folder, 'market.json'))
  return folder
}

export interface FeedGateway extends TestGateway {
  /** Buys a plan and returns its token. */
  token(plan: 'live/24h' | 'live/30d' | 'archive/30d'): Promise<string>
}

/** Opens the gateway and waits until the feed answers. */
export async function openFeedGateway(
  catalog = fullCatalog(),
  overrides: Overrides = {},
  environment: Readonly<Record<string, string>> = {},
): Promise<FeedGateway> {
  const folders = { CATALOG_DIR: catalog, PLUGIN_DIRS: join(root, 'plugins') }
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-feed-data-'))
  const storage = { DATA_DIR: dataDir, ...environment }
  if (environment['DATABASE_URL'] === undefined) await skipHistory(readConfig(storage).dataDir)
  const gateway = await openGateway({ ...folders, ...storage }, { inMemory: false, ...overrides })
  // Until the sample is open, every route of the feed answers 503. The pause stays below the rate limit.
  while ((await fetch(`${gateway.url}/v1/potus`)).status === 503) await sleep(200)
  return {
    ...gateway,
    async token(plan) {
      const response = await buy(`${gateway.url}/v1/potus/subscribe/${plan}`, gateway.wallet, 2, { method: 'POST' })
      if (response.status !== 200) throw new Error(`the plan was not sold: ${await response.text()}`)
      return String((await json(response))['token'])
    },
    async close() {
      await gateway.close()
      for (const folder of [catalog, dataDir]) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Marks every day but the last three as written by the sample, so that tests do not wait until the month before has been
 * generated.
 */
async function skipHistory(dataDir: string): Promise<void> {
  mkdirSync(dataDir, { recursive: true })
  const db = openDatabase({ file: join(dataDir, 'products.sqlite') })
  await migrate(db, 'potus', migrations)
  const today = Math.floor(Date.now() / DAY) * DAY
  const days = Array.from({ length: HISTORY_DAYS }, (_, index) => today - (index + 3) * DAY)
  const notes = days.map((midnight) => ({ name: `sample:${midnight}`, value: String(midnight + DAY - 1) }))
  await db('potus_notes').insert(notes).onConflict('name').ignore()
  await db.destroy()
}
