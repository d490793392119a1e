import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { buy, json, offer, payment, send } from '../support/agent.ts'
import { gold, TELLER, thing } from '../support/catalog.ts'
import { openPlace, type Place, root, until } from './place.ts'

const DOCUMENTS = readFileSync(join(root, 'catalog/documents.json'), 'utf8')
/** Of a hundred tries of a hung import or set-up none should be a machine that is merely busy. */
const SETUP_SECONDS = 2

describe('a faulty product', function () {
  this.timeout(60_000)
  let place: Place
  let load: { readonly outcomes: (number | string)[]; stop(): Promise<void> }

  before(async () => {
    place = await openPlace({
      catalog: { 'documents.json': DOCUMENTS, 'gold.json': gold() },
      plugins: ['gold'],
      overrides: { setupSeconds: SETUP_SECONDS },
    })
    load = sellGold()
  })
  after(async () => {
    await load.stop()
    await place.close()
  })

  /** Sells gold, again and again, whatever else goes on. */
  function sellGold() {
    const outcomes: (number | string)[] = []
    let isOver = false
    const loop = (async () => {
      while (!isOver) {
        const outcome = await buy(`${place.url}/v1/gold`, place.wallet).then(
          async (answer) => ((await json(answer))['price'] === 1900 ? answer.status : `${answer.status}, wrong`),
          (error: unknown) => String(error),
        )
        outcomes.push(outcome)
        await new Promise((wake) => setTimeout(wake, 5))
      }
    })()
    return {
      outcomes,
      async stop() {
        isOver = true
        await loop
      },
    }
  }

  afterEach(async () => {
    if (place.gateway.current.catalog.products.length > 2 || place.gateway.mistakes.length > 0) await remove()
    expect(load.outcomes.filter((outcome) => outcome !== 200)).to.deep.equal([])
    expect(load.outcomes.length).to.be.greaterThan(0)
  })

  const transfers = (operation: string) =>
    place.gateway.journal.list({ limit: 100, operations: [operation], states: ['settled', 'submitted', 'answered'] })

  async function add(document: ReturnType<typeof thing>, fixture = document.plugin): Promise<void> {
    place.drop(fixture)
    place.catalog('x/faulty.json', document)
    await until(
      () =>
        place.gateway.mistakes.some(({ file }) => file === 'x/faulty.json') ||
        place.gateway.current.catalog.products.some(({ file }) => file === 'x/faulty.json'),
    )
  }

  async function remove(): Promise<void> {
    place.remove('catalog', 'x')
    await until(
      () =>
        place.gateway.mistakes.length === 0 &&
        !place.gateway.current.catalog.products.some(({ file }) => file === 'x/faulty.json'),
    )
  }

  const withheld: readonly (readonly [string, ReturnType<typeof thing>, RegExp, string?])[] = [
    ['throws on import', thing('throws-on-import'), /does not load: the file of prices is missing/],
    ['hangs on import', thing('hangs-on-import'), /does not load within 2 seconds/],
    ['exports nothing', thing('no-export'), /export default definePlugin/],
    ['exports something else', thing('not-a-plugin'), /export default definePlugin/],
    ['has another name than its folder', thing('misnamed'), /calls itself silver/],
    ['throws in its set-up', thing('throws-in-setup'), /could not be set up: the source asks for a key/],
    ['hangs in its set-up', thing('hangs-in-setup'), /is not set up within 2 seconds/],
    ['lacks a handler', thing('missing-handler'), /no handler for getThing/],
    ['has a handler too many', thing('surplus-handler'), /handles getNobody/],
    ['has a schema that is none', thing('throws', { response: { type: 'nonsense' } }), /nonsense|type/],
    ['has no schema', thing('throws', { response: undefined }), /Has no response/],
    ['has no price', thing('throws', { price: undefined }), /Has no price/],
    ['takes the route of another', thing('throws', { route: 'GET /v1/gold' }), /GET \/v1\/gold is already at/],
    ['takes a route of ours', thing('throws', { route: 'GET /health' }), /GET \/health is already at/],
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
  for (const [title, document, reason] of withheld)
    it(`is withheld where it ${title}: 404, in no document, named with its reason`, async () => {
      await add(document)
      const health = await place.json('/health')
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
      if (own) expect((await place.get(`/v1/${document.plugin}`)).status).to.equal(404)
      for (const path of ['/pricing.json', '/openapi.json', '/.well-known/x402'])
        expect(JSON.stringify(await place.json(path)), path).not.to.contain(document.plugin)
      await remove()
      expect((await place.json('/health'))['status']).to.equal('ok')
    })

  it('holds a drop-in up once while it hangs, not at every change', async () => {
    await add(thing('hangs-in-setup'))
    const began = performance.now()
    place.drop('spy')
    place.catalog('spy.json', thing('spy'))
    place.catalog('x/faulty.json', { ...thing('hangs-in-setup'), operations: {} })
    await until(async () => (await place.get('/v1/spy')).status === 402)
    expect(performance.now() - began).to.be.lessThan(SETUP_SECONDS * 1000)
    place.remove('catalog', 'spy.json')
    await remove()
  })

  it('is not paid where its handler throws', async () => {
    await add(thing('throws'))
    const answer = await buy(`${place.url}/v1/throws`, place.wallet)
    expect(answer.status).to.equal(502)
    const body = await json(answer)
    expect(body).to.include({ code: 'product_failed', retry: 'after_delay' })
    expect(JSON.stringify(body)).not.to.contain('a detail nobody outside may read')
    expect(await transfers('getThing')).to.deep.equal([])
    await remove()
  })

  it('is not paid where it hangs: 504', async () => {
    await add(thing('hangs', { timeout_seconds: 0.05 }))
    const answer = await buy(`${place.url}/v1/hangs`, place.wallet)
    expect(answer.status).to.equal(504)
    expect(await json(answer)).to.include({ code: 'product_timeout' })
    expect(await transfers('getThing')).to.deep.equal([])
    await remove()
  })

  it('is not paid where its answer breaks its own schema', async () => {
    await add(thing('wrong-answer'))
    const answer = await buy(`${place.url}/v1/wrong-answer`, place.wallet)
    expect([answer.status, (await json(answer))['code']]).to.deep.equal([502, 'product_failed'])
    expect(await transfers('getThing')).to.deep.equal([])
    await remove()
  })

  it('rests after five failures: 503 with Retry-After before any payment is looked at, until it has recovered', async () => {
    await add(thing('throws'))
    const url = `${place.url}/v1/throws`
    for (let count = 0; count < 5; count++) expect((await buy(url, place.wallet)).status).to.equal(502)
    const calls = place.settler.calls.length
    const resting = await send(url, await payment(url, place.wallet))
    expect(resting.status).to.equal(503)
    expect(Number(resting.headers.get('retry-after'))).to.be.within(1, 60)
    expect(await json(resting)).to.include({ code: 'product_suspended' })
    expect(place.settler.calls.slice(calls).filter((call) => call === 'settle').length).to.be.lessThan(20)
    expect((await offer(url)).response.status).to.equal(402)
    expect((await place.json('/health'))['products']).to.deep.include({
      product: 'throws',
      status: 'suspended',
      reason: 'getThing failed five times running',
    })
    place.advance(61)
    expect((await buy(url, place.wallet)).status).to.equal(502)
    expect((await buy(url, place.wallet)).status).to.equal(503)
    place.advance(-61)
    await remove()
  })

  it('takes what it is asked by with it: 503 before any payment, and both are named', async () => {
    place.catalog('teller.json', { ...TELLER, uses: ['getThing'] })
    place.drop('teller')
    await add(thing('throws'))
    await until(() => place.gateway.current.bound.has('askFor'))
    place.catalog('x/faulty.json', thing('throws-on-import'))
    place.drop('throws-on-import')
    const url = `${place.url}/v1/teller?operation=getThing`
    for (let count = 0; count < 5; count++) await buy(`${place.url}/v1/throws`, place.wallet)
    await until(() => place.gateway.mistakes.length > 0)
    const refused = await send(url, await payment(url, place.wallet))
    expect([refused.status, (await json(refused))['code']]).to.deep.equal([503, 'product_suspended'])
    place.remove('catalog', 'teller.json')
    await remove()
  })

  it('goes on selling while its job fails, which is counted and tried again', async () => {
    await add(thing('fails-at-work'))
    const jobs = async () => {
      const stats = (await place.json('/v1/stats'))['products'] as Record<
        string,
        { jobs: { work: { failures: number } } }
      >
      return stats['fails-at-work']?.jobs.work.failures ?? 0
    }
    await until(async () => (await jobs()) > 1)
    expect((await buy(`${place.url}/v1/fails-at-work`, place.wallet)).status).to.equal(200)
    expect((await place.json('/health'))['status']).to.equal('ok')
    await remove()
  })

  it('sees nothing of payments, tokens and keys', async () => {
    await add(thing('spy', { response: { type: 'object' } }))
    const url = `${place.url}/v1/spy`
    const header = await payment(url, place.wallet)
    const answer = await send(url, header, 2, {
      headers: { cookie: 'session=s3cret-cookie', authorization: 'Bearer s3cret-bearer', 'x-api-key': 's3cret-key' },
    })
    const told = JSON.stringify(await json(answer))
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: { signature: string } }
    expect(told).to.contain(place.wallet.address.toLowerCase())
    for (const secret of [header, payload.signature, payload.signature.slice(2, 40), 's3cret'])
      expect(told).not.to.contain(secret)
    await remove()
  })

  it('belongs behind an upstream where it would block the process: its callers wait, nobody else does', async () => {
    const silent: Server = createServer(() => {})
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', () => done()))
    const { port } = silent.address() as AddressInfo
    const { plugin: _, ...document } = thing('blocks', { timeout_seconds: 2 })
    place.catalog('x/faulty.json', {
      ...document,
      upstream: { url: `http://127.0.0.1:${port}/`, timeout_seconds: 0.3 },
    })
    await until(() => place.gateway.current.bound.has('getThing'))
    const sold = load.outcomes.length
    const answer = await buy(`${place.url}/v1/blocks`, place.wallet)
    expect([answer.status, (await json(answer))['code']]).to.deep.equal([504, 'product_timeout'])
    expect(load.outcomes.length).to.be.greaterThan(sold + 2)
    await remove()
    silent.closeAllConnections()
    silent.close()
  })
})
