/** A hand-written operation and catalog, for tests of the code that uses them. */
import type { Catalog, Operation } from '../../gateway/plugin/catalog.ts'

export const OPERATION: Operation = {
  id: 'getThing',
  product: 'thing',
  family: null,
  tags: ['Weather', 'weather', 'ünïcode', 'x'.repeat(33), 'a', 'b', 'c', 'd'],
  method: 'GET',
  path: '/v1/things/{id}/parts/{part}',
  route: 'GET /v1/things/{id}/parts/{part}',
  displayRoute: 'GET /v1/things/*/parts/*',
  summary: 'One part of a thing.',
  description: '',
  price: 5000n,
  priceText: '0.005',
  params: {
    type: 'object',
    properties: { id: { type: 'string', pattern: '^[a-z]+$' }, part: { type: 'integer' } },
    required: ['id', 'part'],
  },
  query: {
    type: 'object',
    properties: { limit: { type: 'integer', minimum: 1, description: 'How many.' }, side: { enum: ['buy', 'sell'] } },
    required: ['limit'],
  },
  body: null,
  bodyMedia: [],
  response: { type: 'object', required: ['size'], properties: { size: { type: 'number' } } },
  view: null,
  form: null,
  tool: null,
  readOnly: true,
  maxFreshnessSeconds: 0,
  fresh: null,
  sellEmpty: true,
  timeoutSeconds: 10,
  queue: 'paid',
  costPerMegabyte: 0,
  maxBytes: 1000,
  cacheSeconds: 0,
  handler: 'getThing',
  upstream: null,
  listed: true,
  internal: false,
  example: { request: { params: { id: 'bolt', part: 7 }, query: { limit: 2 } }, response: { size: 1.5 } },
  wait: 'confirmed',
  identifier: 'optional',
  accepts: null,
  retired: false,
  replacement: null,
  plan: null,
}

export function catalogOf(...operations: readonly Operation[]): Catalog {
  return {
    version: 'v',
    service: { name: 'shop', title: 'The Shop', summary: '', description: '', version: '1', notes: [] },
    products: [],
    operations: new Map(operations.map((operation) => [operation.id, operation])),
    plans: { path: null, model: '', note: '', enabled: false, plans: [] },
    schemas: new Map([['thing.json', { $defs: { Side: { enum: ['buy', 'sell'] } } }]]),
  }
}
