import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { json, payment, send } from '../support/agent.ts'
import { rawRequest, requestLine } from '../http/raw.ts'
import { TARGETS } from '../http/path-spellings.ts'
import { openLiveGateway, type LiveGateway } from './live-gateway.ts'
import { openUpstreamServer, type UpstreamServer } from './upstream-server.ts'

const KINDS = ['buffered', 'stream'] as const
const METHODS = ['POST', 'PUT', 'PATCH'] as const
const MEDIA = [
  'application/json',
  'multipart/form-data',
  'application/x-www-form-urlencoded',
  'text/csv',
  'application/octet-stream',
  'image/png',
]

type Kind = (typeof KINDS)[number]
/** How titles name the two kinds of upstream product. */
const TITLES: Readonly<Record<Kind, string>> = { buffered: 'a buffered product', stream: 'a streaming product' }
const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase()

function product(kind: Kind, url: string) {
  const operations = METHODS.map((method) => [
    `send${capitalized(method)}${capitalized(kind)}`,
    {
      route: `${method} /v1/${kind}/{thing}`,
      summary: 'Takes anything.',
      price: '0.01',
      params: { type: 'object', required: ['thing'], properties: { thing: { type: 'string' } } },
      body: {},
      body_media: MEDIA,
      max_bytes: 200_000,
      response: { type: 'object' },
    },
  ])
  return {
    product: kind,
    title: kind,
    summary: 'Takes anything.',
    upstream: { url: `${url}/in/{thing}?fixed=1`, timeout_seconds: 2, ...(kind === 'stream' ? { stream: true } : {}) },
    operations: {
      ...Object.fromEntries(operations),
      [`drop${capitalized(kind)}`]: {
        route: `DELETE /v1/${kind}/{thing}`,
        summary: 'Deletes.',
        price: '0.01',
        params: { type: 'object', required: ['thing'], properties: { thing: { type: 'string' } } },
        response: { type: 'object' },
      },
    },
  }
}

function dataProduct(kind: Kind, url: string) {
  const path = kind === 'stream' ? '/v1/data' : '/v1/data2'
  const operation = (last: string, price: string) => ({
    route: `GET ${path}/${last}`,
    summary: 'Data.',
    price,
    response: kind === 'stream' ? {} : { type: 'string', contentMediaType: 'text/csv' },
  })
  return {
    product: `data-${kind}`,
    title: 'Data',
    summary: 'Data.',
    upstream: { url: `${url}/data`, ...(kind === 'stream' ? { stream: true } : {}) },
    operations: {
      [`getCurrent${capitalized(kind)}`]: operation('current', '0.01'),
      [`getSample${capitalized(kind)}`]: operation('sample', 'free'),
    },
  }
}

describe('a request that is forwarded to an upstream', () => {
  let live: LiveGateway
  let upstream: UpstreamServer

  before(async () => {
    upstream = await openUpstreamServer()
    const catalog: Record<string, unknown> = {}
    for (const kind of KINDS) {
      catalog[`${kind}.json`] = product(kind, upstream.url)
      catalog[`data-${kind}.json`] = dataProduct(kind, upstream.url)
    }
    live = await openLiveGateway({ catalog })
    expect(live.gateway.issues).to.deep.equal([])
  })
  after(async () => {
    await live.close()
    await upstream.close()
  })
  beforeEach(() => {
    upstream.requests.length = 0
    upstream.answer = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"done":true}')
  })

  const multipart = (): { readonly type: string; readonly bytes: Buffer } => {
    const parts = [
      '--b0und\r\ncontent-disposition: form-data; name="word"\r\n\r\nhé\r\n',
      '--b0und\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\ncontent-type: image/png\r\n\r\n',
      randomBytes(5000),
      '\r\n--b0und--\r\n',
    ]
    return { type: 'multipart/form-data; boundary=b0und', bytes: Buffer.concat(parts.map((part) => Buffer.from(part))) }
  }
  const bodies = (): readonly { readonly type: string; readonly bytes: Buffer }[] => [
    { type: 'application/json', bytes: Buffer.from('{ "a" : 1.0,\n "b": "é\\u00e9" }') },
    { type: 'application/json; charset=utf-8', bytes: Buffer.from('{"a":1e2}') },
    multipart(),
    { type: 'application/x-www-form-urlencoded', bytes: Buffer.from('a=1&a=2&b=%20+c') },
    { type: 'text/csv', bytes: Buffer.from('a;b\r\n1;2\r\n') },
    { type: 'application/octet-stream', bytes: randomBytes(150_000) },
    { type: 'image/png', bytes: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 254]) },
  ]

  async function post(kind: Kind, method: string, { type, bytes }: { type: string; bytes: Buffer }): Promise<Response> {
    const url = `${live.url}/v1/${kind}/some%20thing`
    const header = await payment(url, live.wallet, 2, { method })
    return fetch(url, {
      method,
      headers: { 'payment-signature': header, 'content-type': type },
      body: new Uint8Array(bytes),
    })
  }

  for (const kind of KINDS) {
    it(`of ${TITLES[kind]} arrives with its body unchanged, for every method and media type`, async () => {
      for (const method of METHODS)
        for (const body of bodies()) {
          const answer = await post(kind, method, body)
          expect(answer.status, `${method} ${body.type}`).to.equal(200)
          expect(await json(answer)).to.deep.equal({ done: true })
          const request = upstream.requests.at(-1)
          expect(request).to.include({ method, url: '/in/some%20thing?fixed=1' })
          expect(request?.headers['content-type']).to.equal(body.type)
          expect(request?.body.equals(body.bytes), `${method} ${body.type}`).to.equal(true)
        }
    })

    it(`of ${TITLES[kind]} may have no body`, async () => {
      const url = `${live.url}/v1/${kind}/thing`
      const answer = await send(url, await payment(url, live.wallet, 2, { method: 'DELETE' }), 2, { method: 'DELETE' })
      expect(answer.status).to.equal(200)
      expect(upstream.requests.at(-1)).to.include({ method: 'DELETE' })
      expect(upstream.requests.at(-1)?.body).to.have.length(0)
    })

    it(`of ${TITLES[kind]} is refused before it is forwarded if its body is too large or has another media type`, async () => {
      const large = await post(kind, 'POST', { type: 'application/octet-stream', bytes: Buffer.alloc(200_001) })
      expect(large.status).to.equal(413)
      const video = await post(kind, 'POST', { type: 'video/mp4', bytes: Buffer.from('x') })
      expect(video.status).to.equal(415)
      expect(upstream.requests).to.deep.equal([])
    })

    it(`of ${TITLES[kind]} is bound to its payment by its body, whatever the multipart boundary`, async () => {
      const url = `${live.url}/v1/${kind}/thing`
      const header = await payment(url, live.wallet, 2, { method: 'POST' })
      const sendWith = (boundary: string, word: string) =>
        fetch(url, {
          method: 'POST',
          headers: { 'payment-signature': header, 'content-type': `multipart/form-data; boundary=${boundary}` },
          body: `--${boundary}\r\ncontent-disposition: form-data; name="word"\r\n\r\n${word}\r\n--${boundary}--\r\n`,
        })
      expect((await sendWith('one', 'same')).status).to.equal(200)
      expect((await sendWith('two', 'same')).status).to.equal(200)
      expect((await sendWith('two', 'other')).status).to.equal(409)
    })

    it(`of ${TITLES[kind]} never leaves the path in the catalog, however its parameter is spelt`, async () => {
      const traversals = [
        '..',
        '.',
        '%2e%2e',
        '..%2f..%2fadmin',
        'a%2f..%2f..%2fadmin',
        '..%5cadmin',
        'a%00b',
        '%252e%252e',
      ]
      for (const thing of traversals) {
        const url = `${live.url}/v1/${kind}/${thing}`
        const header = await payment(`${live.url}/v1/${kind}/thing`, live.wallet, 2, { method: 'DELETE' })
        const lines = requestLine('DELETE', new URL(url).pathname, [`payment-signature: ${header}`])
        await rawRequest(Number(new URL(live.url).port), lines.replace(new URL(url).pathname, `/v1/${kind}/${thing}`))
      }
      for (const strange of [
        'a b',
        'a?b',
        'a#b',
        'a;b',
        'a&b=c',
        'http://evil.example/',
        '@evil.example',
        'é',
        '{thing}',
        '%',
      ]) {
        const url = `${live.url}/v1/${kind}/${encodeURIComponent(strange)}`
        const header = await payment(`${live.url}/v1/${kind}/thing`, live.wallet, 2, { method: 'DELETE' })
        await send(url, header, 2, { method: 'DELETE' })
      }
      expect(upstream.requests.length).to.be.greaterThan(5)
      for (const { url, headers } of upstream.requests) {
        expect(headers.host).to.equal(new URL(upstream.url).host)
        expect(new URL(url, upstream.url).pathname, url).to.match(/^\/in\/[^/]+$/)
        expect(url).to.match(/\?fixed=1$/)
      }
    })

    it(`of ${TITLES[kind]} is not answered without payment under any other spelling of its address`, async () => {
      const path = kind === 'stream' ? '/v1/data' : '/v1/data2'
      for (const target of TARGETS) {
        const spelt = target.replaceAll('/v1/data', path)
        const { status } = await rawRequest(Number(new URL(live.url).port), requestLine('GET', spelt))
        expect(status, spelt).to.be.oneOf([402, 404])
      }
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'PROPFIND'])
        await rawRequest(
          Number(new URL(live.url).port),
          requestLine(method, `${path}/current`, ['X-HTTP-Method-Override: GET', `X-Original-URL: ${path}/sample`]),
        )
      expect(upstream.requests).to.deep.equal([])
    })
  }

  it('may be answered in any media type if the catalog declares the response a string', async () => {
    upstream.answer = (response) =>
      response.writeHead(200, { 'content-type': 'text/csv; charset=utf-8', 'set-cookie': 'a=b' }).end('a,b\n1,2\n')
    const url = `${live.url}/v1/data2/current`
    const header = await payment(url, live.wallet)
    for (let count = 0; count < 2; count++) {
      const answer = await send(url, header)
      expect(answer.headers.get('content-type')).to.equal('text/csv; charset=utf-8')
      expect(answer.headers.get('set-cookie')).to.equal(null)
      expect(await answer.text()).to.equal('a,b\n1,2\n')
    }
    expect(upstream.requests).to.have.length(1)
    expect(upstream.requests[0]?.headers).not.to.have.any.keys('payment-signature', 'cookie', 'x-service-token')
  })
})
