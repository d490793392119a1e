/** A gateway with the project's own pages and documents, and a stand-in for the products that the pages call. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { openGateway, type TestGateway } from '../../support/gateway.ts'

const root = resolve(import.meta.dirname, '../../..')

const snapshot = { type: 'object', properties: { as_of: { type: 'string' }, regime: { enum: ['STABLE', 'VOLATILE'] } } }

const PRODUCT = {
  product: 'regime',
  title: 'Market regime',
  summary: 'STABLE or VOLATILE.',
  plugin: 'stand-in',
  operations: {
    getRegimeSample: {
      route: 'GET /v1/regime/sample',
      summary: 'A day late.',
      price: 'free',
      max_freshness_seconds: 86_400,
      response: snapshot,
    },
    getRegimeCurrent: {
      route: 'GET /v1/regime/current',
      summary: 'The regime now.',
      description: 'A forecast of the next hour.',
      price: '0.005',
      response: snapshot,
      example: { request: {}, response: { as_of: '2026-11-20T09:41:00Z', regime: 'STABLE' } },
      tool: true,
    },
    getRegimeDay: {
      route: 'GET /v1/regime/day/{day}',
      summary: 'One day <of> snapshots.',
      price: '2.00',
      params: { type: 'object', required: ['day'], properties: { day: { type: 'string', description: 'ISO date.' } } },
      response: { type: 'object' },
      example: { request: { params: { day: '2026-03-01' } } },
    },
    getRegimeMethod: { internal: true, summary: 'How it is made.', response: { $ref: 'common.json#/$defs/Method' } },
    joinFounding: {
      route: 'POST /founding',
      summary: 'Hear of it first.',
      price: 'free',
      body: { type: 'object', properties: { email: { type: 'string' }, source: { type: 'string' } } },
      body_media: 'application/x-www-form-urlencoded',
      response: { type: 'object' },
      form: { success: '/pricing?ok=1', failure: '/pricing?err={code}' },
    },
  },
}

const PLANS = {
  path: '/v1/regime/subscribe',
  model: 'One payment buys one window.',
  note: 'On the routes of the plan only.',
  plans: [
    {
      plan: 'day',
      label: 'One day',
      tier: 'archive',
      max_freshness_seconds: 86_400,
      duration_seconds: 86_400,
      route: 'POST /v1/regime/subscribe/day',
      price: '50.00',
      authorizes: ['getRegimeDay'],
    },
  ],
}

/** A product that an operator adds as a catalog file. */
const extraProduct = (index: number): object => ({
  product: `more-${index}`,
  title: `Closing prices of market ${index}`,
  summary: 'Daily closing prices of one more market, cleaned, in one form, with the source and the time of each.',
  upstream: { url: 'http://127.0.0.1:9/' },
  operations: {
    [`getMore${index}`]: {
      route: `GET /v1/x/closing-prices-${index}`,
      summary: 'Daily closing prices of one more market, with the source and the time of each of them.',
      description: 'What they are and how they were made, for those who want to know it before they pay.',
      price: '0.01',
      response: snapshot,
      example: {
        request: {},
        response: { as_of: '2026-11-20T09:41:00Z', closes: Array.from({ length: 40 }, () => 9) },
      },
    },
  },
})

export interface PagesGateway extends TestGateway {
  /** Returns the page that a browser gets. */
  page(path: string): Promise<{ readonly status: number; readonly type: string; readonly html: string }>
}

/** Adds `more` products with one paid upstream route each. */
export async function openPagesGateway({ down = false, more: extraProducts = 0 } = {}): Promise<PagesGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'pages-'))
  const catalog = join(folder, 'catalog')
  mkdirSync(catalog)
  for (const name of ['service.json', 'documents.json']) cpSync(join(root, 'catalog', name), join(catalog, name))
  const site = JSON.parse(readFileSync(join(root, 'catalog/site.json'), 'utf8')) as { uses: string[] }
  const uses = [...site.uses.filter((id) => !id.endsWith('Method')), 'getRegimeMethod']
  const write = (name: string, content: object): void => writeFileSync(join(catalog, name), JSON.stringify(content))
  write('site.json', { ...site, uses })
  write('regime.json', { ...PRODUCT, settings: { down } })
  write('plans.json', PLANS)
  for (let index = 0; index < extraProducts; index += 1) write(`more-${index}.json`, extraProduct(index))
  const gateway = await openGateway({
    CATALOG_DIR: catalog,
    PLUGIN_DIRS: [import.meta.dirname, join(root, 'plugins')].join(delimiter),
  })
  return {
    ...gateway,
    async page(path) {
      const response = await fetch(gateway.url + path, { headers: { accept: 'text/html' } })
      return { status: response.status, type: response.headers.get('content-type') ?? '', html: await response.text() }
    },
    async close() {
      await gateway.close()
      rmSync(folder, { recursive: true })
    },
  }
}
