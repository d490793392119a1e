import { expect } from 'chai'
import { thing } from '../support/catalog.ts'
import { SETUP_SECONDS, useGoldShop } from './faulty-product.ts'
import { until } from '../support/until.ts'

describe('a product that cannot be sold', () => {
  const shop = useGoldShop()

  const invalid: readonly (readonly [string, ReturnType<typeof thing>, RegExp, string?])[] = [
    ['throws on import', thing('throws-on-import'), /does not load: the file of prices is missing/],
    ['hangs on import', thing('hangs-on-import'), /does not load within 2 seconds/],
    ['exports nothing', thing('no-export'), /export default definePlugin/],
    ['exports something else', thing('not-a-plugin'), /export default definePlugin/],
    ['has a plugin named differently from its folder', thing('misnamed'), /has the name silver/],
    ['throws in its set-up', thing('throws-in-setup'), /could not be set up: the source asks for a key/],
    ['hangs in its set-up', thing('hangs-in-setup'), /is not set up within 2 seconds/],
    ['lacks a handler', thing('missing-handler'), /no handler for getThing/],
    ['has a handler for no operation', thing('surplus-handler'), /handles getNobody/],
    ['has an invalid schema', thing('throws', { response: { type: 'nonsense' } }), /nonsense|type/],
    ['has no schema', thing('throws', { response: undefined }), /Has no response/],
    ['has no price', thing('throws', { price: undefined }), /Has no price/],
    [
      'takes the route of another product',
      thing('throws', { route: 'GET /v1/gold' }),
      /GET \/v1\/gold is already defined at/,
    ],
    ['takes a route of the gateway', thing('throws', { route: 'GET /health' }), /GET \/health is already defined at/],
    ['takes the MCP address', thing('throws', { route: 'POST /mcp' }), /\/mcp/],
    ['takes an address below /assets', thing('throws', { route: 'GET /assets/base.css' }), /\/assets/],
    [
      'has a route that hides the route of another product',
      thing('throws', {
        route: 'GET /v1/{what}',
        params: { type: 'object', properties: { what: { type: 'string' } } },
      }),
      /GET \/v1\/gold/,
    ],
    ['needs a secret that is not set', thing('throws', {}, { settings: { key: 'env:NO_KEY' } }), /has no NO_KEY/],
  ]
  for (const [title, document, reason] of invalid)
    it(`is disabled if it ${title}: it answers 404, is in no document, and /health names the reason`, async () => {
      await shop.addProduct(document)
      const health = await shop.live.json('/health')
      expect(health['status']).to.equal('degraded')
      const disabled = (health['withheld'] as { product: string; reason: string }[])[0]
      expect(disabled?.product).to.equal(document.product)
      expect(disabled?.reason).to.match(reason)
      expect(health['products']).to.deep.include({
        product: document.product,
        status: 'withheld',
        reason: disabled?.reason,
      })
      const { route } = document.operations.getThing
      const isTaken = ['/v1/gold', '/health', '/mcp', '/assets/base.css'].some((path) => route.endsWith(path))
      if (!isTaken) expect((await shop.live.get(`/v1/${document.plugin}`)).status).to.equal(404)
      for (const path of ['/pricing.json', '/openapi.json', '/.well-known/x402'])
        expect(JSON.stringify(await shop.live.json(path)), path).not.to.contain(document.plugin)
      await shop.removeProduct()
      expect((await shop.live.json('/health'))['status']).to.equal('ok')
    })

  it('delays only one reload while its set-up hangs', async () => {
    shop.live.copyPlugin('spy')
    const msToSell = async (): Promise<number> => {
      const began = performance.now()
      shop.live.writeCatalog('spy.json', thing('spy'))
      await until(async () => (await shop.live.get('/v1/spy')).status === 402)
      return performance.now() - began
    }
    const usual = await msToSell()
    shop.live.remove('catalog', 'spy.json')
    await until(async () => (await shop.live.get('/v1/spy')).status === 404)

    await shop.addProduct(thing('hangs-in-setup'))
    shop.live.writeCatalog('x/faulty.json', { ...thing('hangs-in-setup'), operations: {} })
    expect(await msToSell()).to.be.lessThan(usual + SETUP_SECONDS * 1000)
    shop.live.remove('catalog', 'spy.json')
  })
})
