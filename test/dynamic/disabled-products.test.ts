import { expect } from 'chai'
import { thing } from '../support/catalog.ts'
import { SETUP_SECONDS, useBench } from './faulty-product.ts'
import { until } from './live-gateway.ts'

describe('a product that cannot be sold', () => {
  const bench = useBench()

  const invalid: readonly (readonly [string, ReturnType<typeof thing>, RegExp, string?])[] = [
    ['throws on import', thing('throws-on-import'), /does not load: the file of prices is missing/],
    ['hangs on import', thing('hangs-on-import'), /does not load within 2 seconds/],
    ['exports nothing', thing('no-export'), /export default definePlugin/],
    ['exports something else', thing('not-a-plugin'), /export default definePlugin/],
    ['has another name than its folder', thing('misnamed'), /has the name silver/],
    ['throws in its set-up', thing('throws-in-setup'), /could not be set up: the source asks for a key/],
    ['hangs in its set-up', thing('hangs-in-setup'), /is not set up within 2 seconds/],
    ['lacks a handler', thing('missing-handler'), /no handler for getThing/],
    ['has a handler too many', thing('surplus-handler'), /handles getNobody/],
    ['has a schema that is none', thing('throws', { response: { type: 'nonsense' } }), /nonsense|type/],
    ['has no schema', thing('throws', { response: undefined }), /Has no response/],
    ['has no price', thing('throws', { price: undefined }), /Has no price/],
    ['takes the route of another', thing('throws', { route: 'GET /v1/gold' }), /GET \/v1\/gold is already defined at/],
    ['takes a route of ours', thing('throws', { route: 'GET /health' }), /GET \/health is already defined at/],
    ['takes an address of ours', thing('throws', { route: 'POST /mcp' }), /\/mcp/],
    ['takes an address below one of ours', thing('throws', { route: 'GET /assets/base.css' }), /\/assets/],
    [
      'stands in the way of another',
      thing('throws', {
        route: 'GET /v1/{what}',
        params: { type: 'object', properties: { what: { type: 'string' } } },
      }),
      /GET \/v1\/gold/,
    ],
    ['asks for a secret that is not set', thing('throws', {}, { settings: { key: 'env:NO_KEY' } }), /has no NO_KEY/],
  ]
  for (const [title, document, reason] of invalid)
    it(`is disabled if it ${title}: it answers 404, is in no document, and /health names the reason`, async () => {
      await bench.add(document)
      const health = await bench.place.json('/health')
      expect(health['status']).to.equal('degraded')
      const named = (health['withheld'] as { product: string; reason: string }[])[0]
      expect(named?.product).to.equal(document.product)
      expect(named?.reason).to.match(reason)
      expect(health['products']).to.deep.include({
        product: document.product,
        status: 'withheld',
        reason: named?.reason,
      })
      const { route } = document.operations.getThing
      const own = !['/v1/gold', '/health', '/mcp', '/assets/base.css'].some((path) => route.endsWith(path))
      if (own) expect((await bench.place.get(`/v1/${document.plugin}`)).status).to.equal(404)
      for (const path of ['/pricing.json', '/openapi.json', '/.well-known/x402'])
        expect(JSON.stringify(await bench.place.json(path)), path).not.to.contain(document.plugin)
      await bench.remove()
      expect((await bench.place.json('/health'))['status']).to.equal('ok')
    })

  it('delays only one reload while it hangs', async () => {
    await bench.add(thing('hangs-in-setup'))
    const began = performance.now()
    bench.place.drop('spy')
    bench.place.catalog('spy.json', thing('spy'))
    bench.place.catalog('x/faulty.json', { ...thing('hangs-in-setup'), operations: {} })
    await until(async () => (await bench.place.get('/v1/spy')).status === 402)
    expect(performance.now() - began).to.be.lessThan(SETUP_SECONDS * 1000)
    bench.place.remove('catalog', 'spy.json')
  })
})
