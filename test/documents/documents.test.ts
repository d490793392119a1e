import { expect } from 'chai'
import { createDocumentsPlugin } from '../../gateway/documents/documents-plugin.ts'
import { llms } from '../../gateway/documents/llms.ts'
import { openapi } from '../../gateway/documents/openapi.ts'
import type { Catalog } from '../../gateway/plugin/catalog.ts'
import type { Edition, ProductStatus } from '../../gateway/products/edition.ts'
import { type Call, type PluginContext, Reply } from '../../gateway/plugin/plugin.ts'
import type { PriceList } from '../../gateway/documents/pricing.ts'
import { documentContract } from '../contracts/document.ts'
import { proves } from '../requirements.ts'
import { metalsCatalog, ownCatalog, DEPLOYMENT } from './metals-catalog.ts'

documentContract('a catalog with everything in it', metalsCatalog, DEPLOYMENT)
documentContract("the project's own catalog", ownCatalog, DEPLOYMENT)

describe("the project's own llms.txt", () => {
  let text: string
  before(async () => (text = llms(await ownCatalog(), DEPLOYMENT)))

  it('says what each product that is sold is for, and what not', async () => {
    const { products } = await ownCatalog()
    const sold = products.filter(
      ({ id, operations }) => id !== 'plans' && operations.some(({ price }) => price !== null),
    )
    for (const { id, whenToUse } of sold) expect(whenToUse, id).to.match(/^Use it .+ (not|no) /)
  })

  it('says whose feed POTUS is, and lists no free form beside the route that is paid for', () => {
    expect(text).to.contain('the President of the United States')
    expect(text).to.match(/^- \[POST \/v1\/audit\].*\$5\.00/m)
    expect(text).to.not.match(/^- \[POST \/(audit|founding)\]/m)
  })
})

type Handler = (call: Pick<Call, 'catalog' | 'operation'>) => Promise<Reply> | Reply

describe('the documents plugin', () => {
  let catalog: Catalog
  let status: ProductStatus[]
  let disabled: Edition['disabled']
  let settler: { ready: boolean; reason?: string }
  let journal: { ready: boolean; reason?: string }
  const started = new Date('2026-03-01T00:00:00Z')
  let handlers: Readonly<Record<string, Handler>>

  const edition = (): Edition =>
    ({
      catalog,
      disabled,
      status: () => status,
      freshness: () => [],
      facts: async () => ({ metals: { sold: 7 }, tin: { tons: 2 } }),
    }) as unknown as Edition

  before(async () => {
    const plugin = createDocumentsPlugin({
      ...DEPLOYMENT,
      now: () => new Date(started.getTime() + 90_500),
      editions: edition,
      issues: () => [],
      prices: { history: async () => [] },
      jwks: () => ({ keys: [{ kty: 'OKP', kid: 'one' }] }),
      started,
      dataMode: 'sample',
      warnings: () => [],
      journalHealth: () => journal,
      settlerHealth: () => settler,
    })
    const { docs, stats } = DEPLOYMENT
    const settings = { docs, stats: stats as string }
    handlers = (await plugin.setup({ settings } as unknown as PluginContext)).handlers as unknown as typeof handlers
  })

  beforeEach(async () => {
    catalog = await metalsCatalog()
    status = [{ product: 'metals', status: 'ok' }]
    disabled = []
    settler = { ready: true }
    journal = { ready: true }
  })

  async function answer(id: string, from = catalog): Promise<Reply> {
    const operation = from.operations.get(id)
    if (operation === undefined) throw new Error(`no ${id}`)
    return (handlers[operation.handler] as Handler)({ catalog: from, operation })
  }

  const STATIC = [
    'getPricing',
    'getDiscovery',
    'getOpenapi',
    'getLlms',
    'getSitemap',
    'getRobots',
    'getApiCatalog',
    'getFamilyX',
  ]

  it('has a handler for exactly the operations of its product document', () => {
    const product = catalog.products.find(({ id }) => id === 'documents')
    expect(Object.keys(handlers)).to.have.members([...new Set(product?.operations.map(({ handler }) => handler))])
  })

  it('includes the catalog version in every document', async () => {
    for (const id of STATIC) {
      const { headers } = await answer(id)
      expect(headers['x-catalog-version'], id).to.equal(catalog.version)
      expect(headers['etag'], id).to.match(new RegExp(`^"${catalog.version}-[0-9a-f]{12}"$`))
      expect(headers['cache-control'], id).to.equal('public, max-age=60')
    }
  })

  it('changes its ETags only when the catalog changes', async () => {
    const same = await metalsCatalog()
    const other = await metalsCatalog({ 'service.json': { summary: 'Prices of metals and more.' } })
    for (const id of STATIC) {
      const etag = (await answer(id)).headers['etag']
      expect((await answer(id, same)).headers['etag'], id).to.equal(etag)
      expect((await answer(id, other)).headers['etag'], id).not.to.equal(etag)
    }
  })

  it('lists each tag once when two products have the same title', () => {
    const products = catalog.products.map((product) => ({ ...product, title: 'Metals' }))
    const names = openapi({ ...catalog, products }, DEPLOYMENT).tags.map(({ name }) => name)
    expect(names.filter((name) => name === 'Metals')).to.have.length(1)
    expect(new Set(names).size).to.equal(names.length)
  })

  it('builds each document once per catalog', async () => {
    for (const id of STATIC) expect((await answer(id)).body, id).to.equal((await answer(id)).body)
  })

  it('sends text and XML with their media types', async () => {
    expect((await answer('getLlms')).headers['content-type']).to.equal('text/plain; charset=utf-8')
    expect((await answer('getRobots')).headers['content-type']).to.equal('text/plain; charset=utf-8')
    expect((await answer('getSitemap')).headers['content-type']).to.equal('application/xml; charset=utf-8')
    expect((await answer('getApiCatalog')).headers['content-type']).to.match(/^application\/linkset\+json/)
  })

  it('reports ok while everything works', async () => {
    const { body, headers } = await answer('getHealth')
    expect(body).to.include({ status: 'ok', data_mode: 'sample', uptime_seconds: 90, network: 'base' })
    expect(body).to.deep.include({ settler: { ready: true }, products: status, withheld: [] })
    expect(headers['cache-control']).to.equal('no-store')
  })

  it('reports degraded and the reason when a product is disabled or suspended, or payments cannot be settled', async () => {
    settler = { ready: false, reason: 'the chain does not answer' }
    expect((await answer('getHealth')).body).to.deep.include({ status: 'degraded', settler })
    settler = { ready: true }
    status = [{ product: 'metals', status: 'suspended', reason: 'failed five times' }]
    expect((await answer('getHealth')).body).to.deep.include({ status: 'degraded', products: status })
    status = []
    disabled = [{ product: 'tin', file: 'x/tin.json', reason: 'no handler for getTin' }]
    expect((await answer('getHealth')).body).to.deep.include({ status: 'degraded', withheld: disabled })
  })

  it('repeats the facts of the leading product at the top of the statistics', async () => {
    const { body } = await answer('getStats')
    expect(body).to.deep.equal({
      sold: 7,
      data_mode: 'sample',
      catalog_version: catalog.version,
      products: { metals: { sold: 7, data_mode: 'sample' }, tin: { tons: 2, data_mode: 'sample' } },
    })
  })

  it('writes the price list and the discovery document as docs/interface.md specifies', async () => {
    proves('price-list', 'discovery', 'openapi-version')
    const prices = { 'GET /v1/metals/current': 0.005, 'GET /v1/metals/bar/*': 2, 'POST /v1/metals/subscribe/day': 50 }
    const { currency, network, pay_to, prices_usd } = (await answer('getPricing')).body as PriceList
    expect({ currency, network, pay_to }).to.deep.equal({ currency: 'USDC', network: 'base', pay_to: DEPLOYMENT.payTo })
    expect(prices_usd).to.include(prices)
    const { body } = await answer('getDiscovery')
    expect(body).to.include({
      service: 'Shop',
      what: 'Prices of metals, paid per call.',
      docs: '/docs',
      openapi: '/openapi.json',
    })
    expect(body).to.deep.nested.include({
      'payment.protocol': 'x402',
      'payment.network': 'base',
      'payment.currency': 'USDC',
    })
    const { free_endpoints, paid_endpoints } = body as { free_endpoints: string[]; paid_endpoints: object }
    expect(free_endpoints).to.include.members(['/v1/metals/sample', '/shelf', '/pricing.json', '/v1/metals/subscribe'])
    expect(paid_endpoints).to.include({ 'GET /v1/metals/current': '$0.005', 'GET /v1/metals/bar/*': '$2.00' })
    expect((await answer('getOpenapi')).body).to.deep.nested.include({ 'info.version': '0.1.0' })
  })

  it('lists a family with prices, examples and schemas whose references resolve inside the document', async () => {
    proves('x-family')
    const { body } = (await answer('getFamilyX')) as Reply<{
      products: { product: string; operations: { route: string; price_usd: number; response: object }[] }[]
      schemas: object
    }>
    expect(body.products.map(({ product }) => product)).to.deep.equal(['tin'])
    expect(body.products[0]?.operations[0]).to.deep.include({
      route: 'GET /v1/x/tin',
      price_usd: 0.25,
      response: { $ref: '#/schemas/metals.Quote' },
    })
    expect(body.schemas).to.have.all.keys('metals.Quote', 'metals.Metal', 'common.Timestamp')
  })

  it('publishes the keys of access tokens', async () => {
    expect((await answer('getKeySet')).body).to.deep.equal({ keys: [{ kty: 'OKP', kid: 'one' }] })
  })
})
