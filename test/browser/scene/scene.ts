/**
 * The service as screenshots and tests of pages need it: the project's catalog with a short made-up history, and a product
 * that fails.
 */
import { randomBytes } from 'node:crypto'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createGateway } from '../../../gateway/compose.ts'
import { readConfig } from '../../../gateway/config/config.ts'
import type { Hex } from '../../../gateway/config/networks.ts'
import { freePort } from '../../../gateway/sandbox/anvil.ts'
import { root } from '../../lab/experiment.ts'
import { untilReady } from '../../lab/gateway.ts'

const DAY = 86_400_000

const FAULTS = {
  product: 'faults',
  title: 'Refusals',
  summary: 'Fails with the error code in its path.',
  plugin: 'faults',
  operations: {
    refuse: {
      route: 'GET /faults/{code}',
      summary: 'Refuses.',
      price: 'free',
      listed: false,
      params: { type: 'object', required: ['code'], properties: { code: { type: 'string' } } },
      response: { type: 'object' },
    },
    showBroken: { route: 'GET /broken', summary: 'Breaks.', price: 'free', listed: false, view: 'faults-broken' },
    getFormer: {
      route: 'GET /v1/regime/now',
      summary: 'The former address.',
      price: 'free',
      listed: false,
      retired: true,
      replacement: 'GET /v1/regime/current',
      response: { type: 'object' },
    },
  },
} as const

/** Catalog settings with the start of the made-up history, and how many days before the regime's history each starts. */
const HISTORY_STARTS = [
  ['market.json', 'history_start', 8],
  ['regime.json', 'since', 0],
] as const

/**
 * Writes the catalog to a folder, with `days` of regime history or the one it names. Returns the environment variables that
 * select it.
 */
export function writeScene(folder: string, days?: number): Readonly<Record<'CATALOG_DIR' | 'PLUGIN_DIRS', string>> {
  const catalog = join(folder, 'catalog')
  cpSync(join(root, 'catalog'), catalog, { recursive: true })
  for (const [file, setting, daysBefore] of days === undefined ? [] : HISTORY_STARTS) {
    const path = join(catalog, file)
    const document = JSON.parse(readFileSync(path, 'utf8')) as { settings: Record<string, unknown> }
    const first = new Date(Date.now() - ((days ?? 0) + daysBefore) * DAY).toISOString().slice(0, 10)
    document.settings[setting] = `${first}T00:00:00Z`
    writeFileSync(path, JSON.stringify(document))
  }
  writeFileSync(join(catalog, 'faults.json'), JSON.stringify(FAULTS))
  return { CATALOG_DIR: catalog, PLUGIN_DIRS: [join(root, 'plugins'), import.meta.dirname].join(delimiter) }
}

/** Days of regime history. The start page shows 30 of them, delayed by one day. */
const HISTORY_DAYS = 33

export interface OpenScene {
  readonly url: string
  readonly buyer: Hex
  /** Gives access to the operator console. */
  readonly operatorToken: string
  close(): Promise<void>
}

/** Starts the service in its own sandbox, with all data in `folder`. Throws if the service has no sandbox. */
export async function openScene(folder: string): Promise<OpenScene> {
  const operatorToken = randomBytes(24).toString('hex')
  const place = { PORT: String(await freePort()), DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'silent' }
  const environment = { ...place, ...writeScene(folder, HISTORY_DAYS), OPERATOR_TOKEN: operatorToken }
  const gateway = await createGateway(readConfig(environment))
  const url = await gateway.listen()
  await untilReady(url)
  const buyer = gateway.settlement.sandbox?.buyer.privateKey
  if (buyer === undefined) throw new Error('The service does not run in a sandbox.')
  return { url, buyer, operatorToken, close: () => gateway.close() }
}
