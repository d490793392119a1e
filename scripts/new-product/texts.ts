/**
 * The texts of the files of a new product: document, schema, plugin and test, or the document only if an upstream answers.
 * They are a starting point for the author.
 */
import { PRODUCT_SCHEMA } from '../../gateway/config/project-root.ts'
import { paramsOf } from '../../gateway/catalog/product-drafts.ts'

export interface NewProduct {
  /** Id and folder name, e.g. "gold-price". */
  readonly product: string
  readonly title: string
  readonly summary: string
  /** "free", or US dollars: "0.005". */
  readonly price: string
  /** Address of the upstream, with parameters in braces. Empty if a plugin answers. */
  readonly upstream: string
}

export const FAMILY = 'x'

/** Where the test of a product is, and which runner runs it. A checkout has Mocha; a shop needs nothing but Node. */
export type TestRunner = 'mocha' | 'node'

const RUNNERS = {
  mocha: '',
  node: "import { after, describe, it } from 'node:test'\n",
} as const satisfies Record<TestRunner, string>

function pascal({ product }: NewProduct): string {
  return product
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** The example answer in the document. */
const ANSWER = {
  as_of: '2026-11-20T09:41:00.000Z',
  data_mode: 'sample',
  items: [
    { time: '2026-11-20T09:00:00.000Z', value: 0.25 },
    { time: '2026-11-20T08:00:00.000Z', value: 0.5 },
  ],
}

/** The catalog document of a product that a plugin answers. */
export function documentOf(made: NewProduct): string {
  const { product, title, summary, price } = made
  return json({
    $schema: PRODUCT_SCHEMA,
    product,
    family: FAMILY,
    title,
    summary,
    plugin: product,
    operations: {
      [`get${pascal(made)}`]: {
        route: `GET /v1/${FAMILY}/${product}`,
        summary,
        price,
        // Nothing is sold while the newest item is older. The plugin reports how old it is.
        ...(price === 'free' ? {} : { fresh: { newest_seconds: 7200 } }),
        query: { $ref: `${product}.json#/$defs/${pascal(made)}Query` },
        response: { $ref: `${product}.json#/$defs/${pascal(made)}Answer` },
        tool: true,
        example: { request: { query: { limit: 2 } }, response: ANSWER },
      },
    },
  })
}

/** The catalog document of a product that an upstream answers. */
export function upstreamOf(made: NewProduct): string {
  const { product, title, summary, price, upstream } = made
  const names = [...new Set(paramsOf(upstream))]
  const properties = Object.fromEntries(
    names.map((name) => [name, { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' }]),
  )
  return json({
    $schema: PRODUCT_SCHEMA,
    product,
    family: FAMILY,
    title,
    summary,
    upstream: { url: upstream, timeout_seconds: 5, max_bytes: 1_000_000 },
    operations: {
      [`get${pascal(made)}`]: {
        route: `GET /v1/${[FAMILY, product, ...names.map((name) => `{${name}}`)].join('/')}`,
        summary,
        price,
        ...(names.length > 0 ? { params: { type: 'object', required: names, properties } } : {}),
        response: { type: 'object' },
        tool: true,
        example: { request: { params: Object.fromEntries(names.map((name) => [name, name])) } },
      },
    },
  })
}

/** The schema of the query and the answer. Generated types have the names of definitions, so these begin with the product. */
export function schemaOf(made: NewProduct): string {
  const { product, title, summary } = made
  const time = { type: 'string', format: 'date-time' }
  return json({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `${product}.json`,
    title,
    $defs: {
      [`${pascal(made)}Query`]: {
        type: 'object',
        properties: {
          limit: {
            type: 'integer',
            minimum: 1,
            maximum: 100,
            default: 10,
            description: 'Largest number of items in one answer.',
          },
        },
      },
      [`${pascal(made)}Answer`]: {
        type: 'object',
        required: ['as_of', 'data_mode', 'items'],
        description: summary,
        properties: {
          as_of: { ...time, description: 'The newest moment of the data in this answer.' },
          data_mode: { $ref: 'common.json#/$defs/DataMode' },
          items: {
            type: 'array',
            description: 'Newest first.',
            items: {
              type: 'object',
              required: ['time', 'value'],
              properties: { time, value: { type: 'number' } },
            },
          },
        },
      },
    },
  })
}

/** The plugin, which returns made-up numbers. */
export function pluginOf(made: NewProduct): string {
  return `/** ${made.summary.replaceAll('*/', '* /')} */
import { definePlugin, Unavailable } from 'tollgate/plugin'

const HOUR_MS = 3_600_000

export default definePlugin({
  name: '${made.product}',
  setup: ({ deployment }) => ({
    /** How fresh the data are. The gateway compares it with "fresh" of the document before it accepts a payment. */
    freshness: (_, asOf) => ({
      newest: deployment.data_mode === 'online' ? null : new Date(Math.floor(asOf.getTime() / HOUR_MS) * HOUR_MS),
      sources: null,
      coverage: 1,
    }),
    handlers: {
      /** Returns one item an hour up to asOf. Replace it with your own data, and never return anything newer than asOf. */
      get${pascal(made)}({ input, asOf }) {
        if (deployment.data_mode === 'online') throw new Unavailable('This product has no real data yet, only made-up numbers.')
        const newest = Math.floor(asOf.getTime() / HOUR_MS)
        const items = Array.from({ length: input.query.limit }, (_, age) => ({
          time: new Date((newest - age) * HOUR_MS).toISOString(),
          value: Math.sin(newest - age),
        }))
        return { as_of: asOf.toISOString(), data_mode: 'sample', items }
      },
    },
  }),
})
`
}

/** The test: the contract test kit, and one example. `plugin` is the address to import the plugin from. */
export function testOf(made: NewProduct, plugin: string, runner: TestRunner): string {
  return `import assert from 'node:assert/strict'
${RUNNERS[runner]}import { openTestProduct, TestClock, testContract } from 'tollgate/testing'
import plugin from '${plugin}'

const clock = new TestClock('2026-06-01T12:00:00Z')
const product = await openTestProduct(plugin, { clock })

describe('${made.product}', () => {
  after(product.close)

  testContract(product.edition, { now: clock.now(), product: '${made.product}' })

  it('returns as many items as requested, newest first', async () => {
    const { items } = await product.call('get${pascal(made)}', { query: { limit: 3 } })
    assert.deepEqual(
      items.map(({ time }) => time),
      ['2026-06-01T12:00:00.000Z', '2026-06-01T11:00:00.000Z', '2026-06-01T10:00:00.000Z'],
    )
  })
})
`
}
