/** The project's catalog with a short made-up history and a product that fails, for screenshots and tests of pages. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
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

/** Writes the catalog to a folder, with `days` of regime history. Returns the environment variables that select it. */
export function writeScene(folder: string, days: number): Readonly<Record<'CATALOG_DIR' | 'PLUGIN_DIRS', string>> {
  const catalog = join(folder, 'catalog')
  cpSync(join(root, 'catalog'), catalog, { recursive: true })
  for (const [file, setting, daysBefore] of HISTORY_STARTS) {
    const path = join(catalog, file)
    const document = JSON.parse(readFileSync(path, 'utf8')) as { settings: Record<string, unknown> }
    const first = new Date(Date.now() - (days + daysBefore) * DAY).toISOString().slice(0, 10)
    document.settings[setting] = `${first}T00:00:00Z`
    writeFileSync(path, JSON.stringify(document))
  }
  writeFileSync(join(catalog, 'faults.json'), JSON.stringify(FAULTS))
  return { CATALOG_DIR: catalog, PLUGIN_DIRS: [join(root, 'plugins'), import.meta.dirname].join(delimiter) }
}

/** Waits until the service has computed its history. Throws after two minutes. */
export async function untilReady(url: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if ((await fetch(`${url}/v1/regime/sample`)).ok) return
    await new Promise((wake) => setTimeout(wake, 200))
  }
  throw new Error('The service did not compute its history within two minutes.')
}
