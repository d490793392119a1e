import { expect } from 'chai'
import { rawRequest, requestLine } from './raw.ts'
import { openTransportGateway, PRICED, type TransportGateway, route } from './transport-gateway.ts'
import { TARGETS } from './path-spellings.ts'

const SECRET = 'what is sold'

describe('another spelling of a priced path', () => {
  let gateway: TransportGateway
  before(async () => {
    gateway = await openTransportGateway([
      route('getCurrent', 'GET /v1/data/current', PRICED, () => SECRET),
      route('getSample', 'GET /v1/data/sample', {}, () => 'free'),
      route('buy', 'POST /v1/data/current', PRICED, () => SECRET),
      route(
        'check',
        'POST /v1/data/check',
        { body: { type: 'object' }, bodyMedia: ['application/json'] },
        () => SECRET,
      ),
      route('getDay', 'GET /v1/days/{day}', PRICED, () => SECRET),
      route('getNamed', 'GET /v1/named/{name}', {}, ({ raw }) => ({ name: raw.params['name'] })),
    ])
  })
  after(() => gateway.close())
  afterEach(() => {
    expect(gateway.calls).to.have.length(0)
  })

  it('is refused with JSON and never runs the handler', async () => {
    for (const target of TARGETS) {
      const { status, body } = await rawRequest(gateway.port, requestLine('GET', target))
      expect(status, target).to.equal(404)
      expect(JSON.parse(body), target).to.include({ code: 'not_found' })
    }
  })

  it('answers 402 if it is the same resource, in absolute form or with a query', async () => {
    for (const target of [
      '/v1/data/current?x=1',
      '/v1/data/current?',
      '/v1/data/current?%',
      '/v1/data/current?a=%00&b=%ff',
      '/v1/data/current?/../sample',
      'http://shop.example/v1/data/current',
      'http://elsewhere.example:99/v1/data/current?x=1',
      'HTTPS://elsewhere.example/v1/data/current',
      'http://user:word@elsewhere.example/v1/data/current',
    ]) {
      const { status, head } = await rawRequest(gateway.port, requestLine('GET', target))
      expect(status, target).to.equal(402)
      expect(head.toLowerCase(), target).to.contain('payment-required: ')
    }
  })

  it('is refused also where the path has a parameter, and its address was asked for before', async () => {
    const answerTo = async (method: string, target: string) => {
      const { status, body } = await rawRequest(gateway.port, requestLine(method, target))
      expect(body, target).to.not.contain(SECRET)
      return status
    }
    for (const address of ['/v1/days/monday', '/v1/days/mon%20day', '/v1/days/{day}'])
      for (const target of [address, address, `${address}?x=1`]) expect(await answerTo('GET', target)).to.equal(402)
    for (const target of TARGETS) {
      const spelling = target.replace('data', 'days').replace('current', 'monday')
      // In absolute form the target goes to the router.
      expect(await answerTo('GET', spelling), spelling).to.equal(
        await answerTo('GET', `http://elsewhere.example${spelling}`),
      )
    }
    expect(await answerTo('HEAD', '/v1/days/monday')).to.equal(402)
    expect(await answerTo('POST', '/v1/days/monday')).to.equal(405)
    expect(await answerTo('GET', '/v1/days/tuesday')).to.equal(402)
  })

  it('has its own parameters each time', async () => {
    for (const name of ['a b', 'a', 'a%20b', 'constructor', '__proto__'])
      for (let time = 0; time < 3; time += 1) {
        const target = `/v1/named/${encodeURIComponent(name)}`
        const { status, body } = await rawRequest(gateway.port, requestLine('GET', target))
        expect(status).to.equal(200)
        expect(JSON.parse(body)).to.deep.equal({ name })
      }
    gateway.calls.length = 0
  })

  it('cannot bypass payment with another method or a method override', async () => {
    const override = ['X-HTTP-Method-Override: GET', 'X-HTTP-Method: GET', 'X-Method-Override: GET']
    for (const method of ['HEAD', 'GET'])
      expect((await rawRequest(gateway.port, requestLine(method, '/v1/data/current', override))).status).to.equal(402)
    const posted = requestLine('POST', '/v1/data/current?_method=GET', [...override, 'Content-Length: 0'])
    expect((await rawRequest(gateway.port, posted)).status).to.equal(402)
    for (const method of ['PUT', 'PATCH', 'DELETE', 'PURGE', 'PROPFIND', 'TRACE']) {
      const { status, body } = await rawRequest(gateway.port, requestLine(method, '/v1/data/current', override))
      expect(status, method).to.equal(405)
      expect(body).to.not.contain(SECRET)
    }
    for (const headers of [['X-Original-URL: /v1/data/sample'], ['X-Rewrite-URL: /v1/data/sample']])
      expect((await rawRequest(gateway.port, requestLine('GET', '/v1/data/current', headers))).status).to.equal(402)
  })

  it('answers OPTIONS for every path and for the asterisk form', async () => {
    for (const target of ['*', '/v1/data/current', '/nowhere'])
      expect((await rawRequest(gateway.port, requestLine('OPTIONS', target))).status, target).to.equal(204)
  })

  it('answers malformed HTTP and headers that are too long with a JSON error', async () => {
    const nonsense = await rawRequest(gateway.port, 'GET /v1/data/current HTTP/9.9\r\n\r\n')
    expect(nonsense.status).to.equal(400)
    expect((await rawRequest(gateway.port, requestLine('GET', '\\v1\\data\\current'))).status).to.equal(400)
    expect(JSON.parse(nonsense.body)).to.include({ code: 'validation_failed', retry: 'after_fix' })
    const long = requestLine('GET', '/v1/data/current', [`X-PAYMENT: ${'A'.repeat(40_000)}`])
    expect((await rawRequest(gateway.port, long)).status).to.equal(431)
    const payment = requestLine('GET', '/v1/data/sample', [`X-PAYMENT: ${'A'.repeat(20_000)}`])
    expect((await rawRequest(gateway.port, payment)).status).to.equal(200)
    gateway.calls.length = 0
    const split = 'GET /v1/data/current HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n'
    expect((await rawRequest(gateway.port, split)).status).to.equal(400)
  })

  it('says in the error what is wrong with a request that is not HTTP', async () => {
    const head = (text: string) => `${text}\r\nHost: a\r\n`
    const cases: readonly (readonly [string, string])[] = [
      [`${head('get /v1/data/current HTTP/1.1')}\r\n`, 'known HTTP method in capital letters'],
      [`${head('POST /v1/data/check HTTP/1.1')}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, 'size of a chunk'],
      ['GET /v1/data/current HTTP/1.1\r\nConnection: close\r\n\r\n', 'exactly one Host'],
      [`${head('GET /v1/data/current HTTP/1.1')}Host: b\r\nConnection: close\r\n\r\n`, 'exactly one Host'],
    ]
    for (const [text, message] of cases) {
      const { status, body } = await rawRequest(gateway.port, text)
      expect(status, message).to.equal(400)
      expect(JSON.parse(body).message).to.contain(message)
    }
    expect((await rawRequest(gateway.port, 'GET /v1/data/current HTTP/1.0\r\n\r\n')).status).to.equal(402)
  })

  it('ignores expectations other than 100-continue', async () => {
    const other = requestLine('GET', '/v1/data/current', ['Expect: a-miracle'])
    const { status, body } = await rawRequest(gateway.port, other)
    expect(status).to.equal(402)
    expect(JSON.parse(body)).to.include({ code: 'payment_required' })
  })
})
