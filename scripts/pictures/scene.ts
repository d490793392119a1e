/** The catalog that is sold, with a short made-up past and a product that refuses: for pictures and tests of pages. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
const DAY = 86_400_000

const FAULTS = {
  product: 'faults',
  title: 'Refusals',
  summary: 'Refuses in whichever way it is asked to.',
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

/** Settings of the catalog that say how far back a made-up past reaches, and how many days more than the regime's. */
const PASTS = [
  ['market.json', 'history_start', 8],
  ['regime.json', 'since', 0],
] as const

/** Lays the catalog into a folder, the regime's past shortened to `days`; answers the environment that opens it. */
export function layScene(folder: string, days: number): Readonly<Record<'CATALOG_DIR' | 'PLUGIN_DIRS', string>> {
  const catalog = join(folder, 'catalog')
  cpSync(join(root, 'catalog'), catalog, { recursive: true })
  for (const [file, setting, more] of PASTS) {
    const path = join(catalog, file)
    const document = JSON.parse(readFileSync(path, 'utf8')) as { settings: Record<string, unknown> }
    const first = new Date(Date.now() - (days + more) * DAY).toISOString().slice(0, 10)
    document.settings[setting] = `${first}T00:00:00Z`
    writeFileSync(path, JSON.stringify(document))
  }
  writeFileSync(join(catalog, 'faults.json'), JSON.stringify(FAULTS))
  return { CATALOG_DIR: catalog, PLUGIN_DIRS: [join(root, 'plugins'), import.meta.dirname].join(delimiter) }
}

/** Waits until the service has a past to show. */
export async function hasPast(url: string): Promise<void> {
  for (let turn = 0; turn < 600; turn += 1) {
    if ((await fetch(`${url}/v1/regime/sample`)).ok) return
    await new Promise((wake) => setTimeout(wake, 200))
  }
  throw new Error('the made-up past was not there in time')
}
