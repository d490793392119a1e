/** Catalogs in temporary folders with the plugins of test/fixtures. They use nothing of the shipped catalog. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { JsonFiles } from '../../gateway/catalog/documents.ts'
import { createPlansPlugin } from '../../gateway/documents/plans/plans-plugin.ts'
import { buildEdition, type EditionOptions } from '../../gateway/products/build.ts'
import { parseReplayShift } from '../../gateway/config/config.ts'
import { createContext } from '../../gateway/products/plugin-context.ts'
import { createWorkerPool } from '../../gateway/workers/pool.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { openDatabase } from '../../gateway/stores/database.ts'
import { openKv } from '../../gateway/stores/kv.ts'
import { migrate } from '../../gateway/stores/migrations.ts'
import { createTokens } from '../../gateway/tokens/access-tokens.ts'
import { openLocalKeys } from '../../gateway/tokens/statement-signer.ts'

const root = resolve(import.meta.dirname, '../..')
export const PLUGINS = join(root, 'test/fixtures/plugins')
export const BASE_URL = 'https://gate.test'

export const SERVICE = {
  name: 'Shop',
  title: 'A shop for tests',
  summary: 'Sells gold prices.',
  description: 'A small catalog.',
  version: '0.1.0',
}

type Fields = Readonly<Record<string, unknown>>

/** Returns a product with one operation "getThing" at its own route, served by the plugin of that name. */
export function thing(plugin: string, operation: Fields = {}, product: Fields = {}) {
  return {
    product: plugin,
    title: plugin,
    summary: 'A thing.',
    plugin,
    ...product,
    operations: {
      getThing: { route: `GET /v1/${plugin}`, summary: 'A thing.', price: '0.01', response: PRICED, ...operation },
    },
  }
}

export const PRICED = { type: 'object', required: ['price'], properties: { price: { type: 'number' } } }

export function gold(operation: Fields = {}, product: Fields = {}) {
  return {
    product: 'gold',
    title: 'Gold',
    summary: 'The price of gold.',
    plugin: 'gold',
    ...product,
    operations: {
      getGold: {
        route: 'GET /v1/gold',
        summary: 'The price of gold.',
        price: '0.005',
        query: { type: 'object', properties: { days: { type: 'integer', minimum: 1, maximum: 30, default: 7 } } },
        response: PRICED,
        tool: true,
        ...operation,
      },
      getGoldColumns: { summary: 'Prices as columns.', internal: true },
    },
  }
}

export const PLANS = {
  path: '/v1/plans',
  model: 'One payment, one window.',
  note: 'A note.',
  plans: [
    {
      plan: 'live-24h',
      label: 'Live, 24 hours',
      tier: 'live',
      max_freshness_seconds: 0,
      duration_seconds: 86_400,
      route: 'POST /v1/plans/live/24h',
      price: '50.00',
      authorizes: ['getGold'],
    },
  ],
}

export const TELLER = {
  product: 'teller',
  title: 'Teller',
  summary: 'Asks others.',
  plugin: 'teller',
  uses: ['getGold', 'getGoldColumns'],
  operations: {
    askFor: {
      route: 'GET /v1/teller',
      summary: 'Asks.',
      price: '0.01',
      query: { type: 'object', required: ['operation'], properties: { operation: { type: 'string' } } },
      response: { type: 'object' },
    },
  },
}

export function openCatalog(documents: Fields = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-catalog-'))
  const [catalogDir, schemaDir] = [join(folder, 'catalog'), join(folder, 'schemas')]
  const write = (dir: string, file: string, content: unknown): void => {
    mkdirSync(dirname(join(dir, file)), { recursive: true })
    writeFileSync(join(dir, file), typeof content === 'string' ? content : JSON.stringify(content))
  }
  mkdirSync(schemaDir)
  cpSync(join(root, 'schemas/plans.json'), join(schemaDir, 'plans.json'))
  for (const [file, content] of Object.entries({ 'service.json': SERVICE, ...documents }))
    write(catalogDir, file, content)
  return {
    folder,
    catalogDir,
    schemaDir,
    /** Writes text unchanged and anything else as JSON. */
    write: (file: string, content: unknown) => write(catalogDir, file, content),
    writeSchema: (file: string, content: unknown) => write(schemaDir, file, content),
    remove: (file: string) => rmSync(join(catalogDir, file)),
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export type TestCatalog = ReturnType<typeof openCatalog>

/** Opens one database on which editions of a catalog can be built repeatedly, with a clock that tests set. */
export async function openEditionBuilder(catalog: TestCatalog, secrets: Readonly<Record<string, string>> = {}) {
  const log = createLog('silent')
  const db = openDatabase({ file: ':memory:' })
  const kv = openKv(null)
  const workers = createWorkerPool()
  const files = new JsonFiles()
  let time = new Date('2026-06-01T12:00:00Z')
  const now = (): Date => time
  const tokens = await createTokens({ keys: null, dataDir: null, issuer: BASE_URL, now })
  const { attestations } = await openLocalKeys(null, null)
  const config = { dataMode: 'sample', replayDir: null, replayShift: parseReplayShift('auto') } as const
  return {
    tokens,
    now,
    advance: (seconds: number) => {
      time = new Date(time.getTime() + seconds * 1000)
    },
    build: async (options: Partial<EditionOptions> = {}) =>
      buildEdition({
        catalogDir: catalog.catalogDir,
        schemaDir: catalog.schemaDir,
        pluginDirs: [PLUGINS],
        files,
        builtins: [createPlansPlugin({ tokens, baseUrl: BASE_URL })],
        contextOf: (plugin, product, settings) =>
          createContext({
            config,
            plugin,
            product,
            settings,
            db,
            kv,
            work: workers.work,
            attestations,
            charged: async () => new Map(),
            log,
            now,
          }),
        checkAnswers: true,
        now,
        log,
        secret: (name) => secrets[name] ?? null,
        migrate: (plugin, steps) => migrate(db, plugin, steps),
        ...options,
      }),
    async close() {
      await workers.close()
      await db.destroy()
    },
  }
}
