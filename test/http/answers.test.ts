import { expect } from 'chai'
import request from 'supertest'
import { InvalidInput } from '../../gateway/errors.ts'
import { Reply } from '../../gateway/plugin/plugin.ts'
import { proves } from '../requirements.ts'
import { BASE_URL, NETWORK, openTransportGateway, PRICED, type TransportGateway, route } from './transport-gateway.ts'

const PAID = { 'X-PAYMENT': 'e30=' }

describe('an HTTP answer', () => {
  let gateway: TransportGateway
  before(async () => {
    gateway = await openTransportGateway(
      [
        route(
          'getSample',
          'GET /v1/sample',
          { cacheSeconds: 60 },
          () => new Reply({ a: 1 }, { headers: { etag: '"s1"' } }),
        ),
        route('getCurrent', 'GET /v1/current', PRICED, () => new Reply({ secret: 1 }, { headers: { ETag: '"c1"' } })),
        route('getEvent', 'GET /v1/event/{selector}', {}, ({ raw }) => raw.params),
        route('search', 'GET /v1/search', {}, ({ raw }) => raw.query),
        route('estimate', 'POST /v1/estimate', { ...PRICED, body: {}, bodyMedia: ['application/json'] }),
        route('fail', 'GET /v1/fail', {}, () => {
          throw new Error('the password is 1234')
        }),
        route('refuse', 'GET /v1/refuse', {}, () => {
          throw new InvalidInput('Too far back.', ['query', 'start'])
        }),
      ],
      {
        settle: (answer, { operation }) =>
          operation === 'getCurrent'
            ? {
                ...answer,
                receipt: {
                  success: true,
                  transaction: '0x12',
                  network: NETWORK,
                  payer: '0x857b06519e91e3a54538791bdbb0e22373e36b66',
                  amount: 5000n,
                  version: 1,
                },
              }
            : answer,
      },
    )
  })
  after(() => gateway.close())
  beforeEach(() => {
    gateway.calls.length = 0
    gateway.requests.length = 0
  })

  it('has a call id, CORS headers and security headers, whatever its status', async () => {
    for (const [path, status] of [
      ['/v1/sample', 200],
      ['/v1/current', 402],
      ['/nowhere', 404],
      ['/v1/fail', 500],
    ] as const) {
      const answer = await request(gateway.server).get(path).expect(status)
      expect(answer.headers['x-call-id'], path).to.match(/^[0-9a-f-]{36}$/)
      expect(answer.headers['access-control-allow-origin'], path).to.equal('*')
      expect(answer.headers['access-control-expose-headers'], path).to.match(
        /PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE/,
      )
      const exposed = (answer.headers['access-control-expose-headers'] as string).split(', ')
      expect(exposed, path).to.include.members(['ETag', 'X-Catalog-Version', 'Content-Disposition', 'Retry-After'])
      expect(answer.headers['x-content-type-options'], path).to.equal('nosniff')
      expect(answer.headers['content-security-policy'], path).to.equal("default-src 'none'; frame-ancestors 'none'")
      expect(answer.headers, path).to.not.have.property('x-powered-by')
    }
  })

  it('shows the price in header and body of a 402, and forbids caching it', async () => {
    const { headers, body } = await request(gateway.server).get('/v1/current').expect(402)
    const v2 = JSON.parse(Buffer.from(headers['payment-required'] as string, 'base64').toString()) as object
    expect(v2).to.nested.include({ x402Version: 2, 'resource.url': `${BASE_URL}/v1/current` })
    expect(body).to.include({ x402Version: 1, code: 'payment_required' })
    expect(headers['cache-control']).to.equal('no-store')
    expect(gateway.calls).to.have.length(0)
  })

  it('includes the receipt when it was paid for, and forbids caching', async () => {
    const { headers, body } = await request(gateway.server).get('/v1/current').set(PAID).expect(200)
    expect(body).to.deep.equal({ secret: 1 })
    expect(headers['cache-control']).to.equal('private, no-store')
    const receipt = JSON.parse(Buffer.from(headers['x-payment-response'] as string, 'base64').toString()) as object
    expect(receipt).to.include({ success: true, transaction: '0x12', network: 'base-sepolia' })
    expect(headers['payment-response']).to.be.a('string')
  })

  it('lets caches keep a free answer for as long as the catalog says', async () => {
    const cached = await request(gateway.server).get('/v1/sample').expect(200)
    expect(cached.headers['cache-control']).to.equal('public, max-age=60')
    const uncached = await request(gateway.server).get('/v1/search').expect(200)
    expect(uncached.headers['cache-control']).to.equal('no-cache')
  })

  it('is 304 when the caller has the current ETag of a free route, but never on a priced route', async () => {
    const fresh = await request(gateway.server).get('/v1/sample').set('If-None-Match', 'W/"x", W/"s1"').expect(304)
    expect(fresh.text).to.equal('')
    await request(gateway.server).get('/v1/sample').set('If-None-Match', '"other"').expect(200)
    const paid = await request(gateway.server).get('/v1/current').set(PAID).set('If-None-Match', '"c1"').expect(200)
    expect(paid.body).to.deep.equal({ secret: 1 })
  })

  it('has the same headers for HEAD of a free route as for GET, without a body', async () => {
    const get = await request(gateway.server).get('/v1/sample')
    const head = await request(gateway.server).head('/v1/sample').expect(200)
    for (const name of ['content-type', 'content-length', 'etag', 'cache-control'])
      expect(head.headers[name], name).to.equal(get.headers[name])
    expect(head.text).to.equal(undefined)
  })

  it('never runs a priced operation for HEAD, even with a payment', async () => {
    for (const presented of [{}, PAID, { 'X-SERVICE-TOKEN': 'token' }]) {
      const head = await request(gateway.server).head('/v1/current').set(presented).expect(402)
      expect(head.headers['payment-required']).to.be.a('string')
    }
    expect(gateway.calls).to.have.length(0)
  })

  it('lists the methods of a path on 405 and on OPTIONS', async () => {
    const refused = await request(gateway.server).delete('/v1/current').expect(405)
    expect(refused.headers['allow']).to.equal('GET, HEAD, OPTIONS')
    expect(refused.body).to.include({ code: 'method_not_allowed', retry: 'after_fix' })
    await request(gateway.server).head('/v1/estimate').expect(405)
    const options = await request(gateway.server).options('/v1/estimate').expect(204)
    expect(options.headers['access-control-allow-methods']).to.equal('POST, OPTIONS')
    const allowed = (options.headers['access-control-allow-headers'] as string).split(', ')
    expect(allowed).to.include.members([
      'Content-Type',
      'X-PAYMENT',
      'PAYMENT-SIGNATURE',
      'X-SERVICE-TOKEN',
      'Idempotency-Key',
      'Access-Control-Expose-Headers',
      'If-None-Match',
    ])
    await request(gateway.server).options('/nowhere').expect(204)
    expect(gateway.requests).to.have.length(0)
  })

  it('shows the call id of an internal error, but not its cause', async () => {
    const { body, headers, text } = await request(gateway.server).get('/v1/fail').expect(500)
    expect(text).to.not.contain('1234')
    expect(body).to.include({ code: 'internal', call_id: headers['x-call-id'] })
  })

  it('lists every problem of an invalid request', async () => {
    proves('detail-shape')
    const { body } = await request(gateway.server).get('/v1/refuse').expect(422)
    expect((body as { detail: unknown }).detail).to.deep.equal([
      { loc: ['query', 'start'], msg: 'Too far back.', type: 'value_error' },
    ])
  })

  it('accepts payments in either header, and the token with or without Bearer', async () => {
    await request(gateway.server)
      .get('/v1/current')
      .set({ 'PAYMENT-SIGNATURE': 'two', 'X-PAYMENT': 'one', 'X-SERVICE-TOKEN': 'Bearer abc.def' })
      .expect(200)
    await request(gateway.server).get('/v1/current').set('x-service-token', 'abc.def').expect(200)
    await request(gateway.server).get('/v1/current').set({ 'X-PAYMENT': '', 'X-SERVICE-TOKEN': '' }).expect(402)
    expect(gateway.requests.map(({ credential }) => credential)).to.deep.equal([
      { payments: ['two', 'one'], token: 'abc.def' },
      { payments: [], token: 'abc.def' },
      null,
    ])
  })

  it('uses the public URL, whatever the Host and X-Forwarded headers say', async () => {
    await request(gateway.server)
      .get('/v1/current?limit=1')
      .set({ Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https' })
      .expect(402)
    expect(gateway.requests[0]?.url).to.equal(`${BASE_URL}/v1/current?limit=1`)
  })

  it('decodes a path parameter as one segment', async () => {
    const { body } = await request(gateway.server).get('/v1/event/a%20b;c=%C3%A9').expect(200)
    expect(body).to.deep.equal({ selector: 'a b;c=é' })
    await request(gateway.server).get('/v1/event/a/b').expect(404)
    await request(gateway.server).get('/v1/event/').expect(404)
  })

  it('turns repeated query keys into a list and treats a hostile key as an ordinary key', async () => {
    const { text } = await request(gateway.server).get('/v1/search?a=1&a=2&b=x+y&__proto__=z&__proto__=q').expect(200)
    expect(text).to.equal('{"a":["1","2"],"b":"x y","__proto__":["z","q"]}')
  })

  it('is a page or JSON for an unknown path, as the caller prefers', async () => {
    const data = await request(gateway.server).get('/nowhere').set('Accept', '*/*').expect(404)
    expect(data.body).to.include({ code: 'not_found', retry: 'never' })
    // This gateway has no error view, so the error page falls back to JSON.
    const fallback = await request(gateway.server).get('/nowhere').set('Accept', 'text/html').expect(404)
    expect(fallback.body).to.include({ code: 'not_found' })
  })
})
