/** A catalog with one operation of every kind that a document shows, and its deployment. */
import { join, resolve } from 'node:path'
import type { Catalog } from '../../gateway/plugin/catalog.ts'
import { withBuiltIn } from '../../gateway/catalog/built-in.ts'
import { createCatalog } from '../../gateway/catalog/resolve.ts'
import { type CatalogDocument, readDocuments } from '../../gateway/catalog/documents.ts'
import { readSchemas } from '../../gateway/catalog/schemas.ts'
import type { DocumentContext } from '../../gateway/documents/document.ts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import type { JsonSchema } from '../../gateway/plugin/plugin.ts'

export const root = resolve(import.meta.dirname, '../..')

export const DEPLOYMENT: DocumentContext = {
  baseUrl: 'https://shop.example',
  network: NETWORKS['base'],
  payTo: '0x00000000000000000000000000000000000000Aa',
  docs: '/docs',
  stats: 'metals',
  updated: '2026-03-01',
}

const QUOTE = { as_of: '2026-03-01T00:00:00Z', metal: 'gold', usd: 2900.5 }

const METALS: JsonSchema = {
  $id: 'metals.json',
  $defs: {
    Quote: {
      type: 'object',
      required: ['as_of', 'metal', 'usd'],
      properties: {
        as_of: { $ref: 'common.json#/$defs/Timestamp' },
        metal: { $ref: '#/$defs/Metal' },
        usd: { type: 'number', description: 'A troy ounce.' },
      },
    },
    Metal: { enum: ['gold', 'silver'] },
    Tree: { type: 'object', properties: { branches: { type: 'array', items: { $ref: '#/$defs/Tree' } } } },
    HistoryQuery: {
      type: 'object',
      properties: {
        metal: { $ref: '#/$defs/Metal' },
        limit: { type: 'integer', minimum: 1, maximum: 100, default: 10, description: 'How many.' },
      },
    },
  },
}

const quote = { $ref: 'metals.json#/$defs/Quote' }

export const DOCUMENTS: readonly CatalogDocument[] = [
  {
    file: 'service.json',
    kind: 'service',
    content: {
      name: 'Shop',
      title: 'Metals for agents',
      summary: 'Prices of metals, paid per call.',
      description: 'A shop for metals.',
      version: '0.1.0',
      contact: 'shop@example.com',
      notes: ['A troy ounce is 31.1 grams.'],
    },
  },
  {
    file: 'metals.json',
    kind: 'product',
    content: {
      product: 'metals',
      title: 'Metal prices',
      summary: 'Gold and silver.',
      plugin: 'metals',
      operations: {
        getSample: {
          route: 'GET /v1/metals/sample',
          summary: 'Yesterday.',
          price: 'free',
          response: quote,
          tool: true,
        },
        getCurrent: {
          route: 'GET /v1/metals/current',
          summary: 'Now.',
          price: '0.005',
          response: quote,
          example: { request: {}, response: QUOTE },
          tool: true,
        },
        getHistory: {
          route: 'GET /v1/metals/history',
          summary: 'Then.',
          price: '0.02',
          query: { $ref: 'metals.json#/$defs/HistoryQuery' },
          response: { type: 'array', items: quote },
          example: { request: { query: { metal: 'gold', limit: 1 } }, response: [QUOTE] },
        },
        getBar: {
          route: 'GET /v1/metals/bar/{serial}',
          summary: 'One bar by its serial number.',
          price: '2.00',
          params: { type: 'object', required: ['serial'], properties: { serial: { type: 'string' } } },
          response: { $ref: 'metals.json#/$defs/Tree' },
          example: { request: { params: { serial: 'A 1' } }, response: { branches: [] } },
        },
        assayBar: {
          route: 'POST /v1/metals/assay',
          summary: 'How pure a bar is.',
          price: '5.00',
          body: { type: 'object', required: ['file'], properties: { file: { type: 'string', format: 'binary' } } },
          body_media: ['multipart/form-data', 'text/csv'],
          response: { type: 'object', properties: { purity: { type: 'number' } } },
          example: { request: { body: { file: 'a,b' } }, response: { purity: 0.999 } },
          tool: true,
        },
        askInside: { internal: true, summary: 'For other products.' },
        getHidden: {
          route: 'GET /v1/metals/hidden',
          summary: 'Not shown.',
          price: '0.01',
          listed: false,
          response: quote,
        },
        getOld: {
          route: 'GET /v1/metals/old',
          summary: 'Of the past.',
          price: '0.01',
          retired: true,
          replacement: 'GET /v1/metals/current',
          response: quote,
        },
        showShelf: { route: 'GET /shelf', summary: 'The shelf.', price: 'free', view: 'shelf' },
        showReport: {
          route: 'GET /report/{rid}',
          summary: 'A report.',
          price: 'free',
          params: { type: 'object', required: ['rid'], properties: { rid: { type: 'string' } } },
          view: 'report',
        },
      },
    },
  },
  {
    file: 'x/tin.json',
    kind: 'product',
    content: {
      product: 'tin',
      family: 'x',
      title: 'Tin',
      summary: 'Tin by the ton.',
      plugin: 'tin',
      operations: { getTin: { route: 'GET /v1/x/tin', summary: 'Tin now.', price: '0.25', response: quote } },
    },
  },
  {
    file: 'plans.json',
    kind: 'plans',
    content: {
      path: '/v1/metals/subscribe',
      model: 'One payment, one window.',
      note: 'Routes of the plan only.',
      plans: [
        {
          plan: 'day',
          label: 'A day',
          tier: 'live',
          max_freshness_seconds: 0,
          duration_seconds: 86400,
          route: 'POST /v1/metals/subscribe/day',
          price: '50.00',
          authorizes: ['getBar', 'getHistory'],
        },
      ],
    },
  },
]

/** Builds a catalog of the documents above and the gateway's own (`documents.json`). `change` edits one product. */
export async function metalsCatalog(change: Readonly<Record<string, object>> = {}): Promise<Catalog> {
  const { documents: own } = await readDocuments(join(root, 'catalog'))
  const shipped = withBuiltIn(own).filter(({ file }) => file === 'documents.json')
  const documents = [...DOCUMENTS, ...shipped].map((document) => ({
    ...document,
    content: { ...document.content, ...change[document.file] },
  }))
  const { schemas } = await readSchemas(join(root, 'schemas'))
  const { catalog, issues } = createCatalog(documents, new Map(schemas).set('metals.json', METALS))
  if (issues.length > 0) throw new Error(JSON.stringify(issues))
  return catalog
}

/** The project's own catalog. */
export async function ownCatalog(): Promise<Catalog> {
  const { documents } = await readDocuments(join(root, 'catalog'))
  const { schemas } = await readSchemas(join(root, 'schemas'))
  return createCatalog(withBuiltIn(documents), schemas).catalog
}
