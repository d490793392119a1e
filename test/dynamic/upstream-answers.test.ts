import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { createLog } from '../../gateway/observe/log.ts'
import { buy, json, payment, send } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway, root } from './live-gateway.ts'
import { until } from '../support/until.ts'
import { openUpstreamServer, type UpstreamServer } from './upstream-server.ts'

const SECRET = 's3cret-of-the-upstream'
const KINDS = ['buffered', 'stream'] as const
/** How titles name the two kinds of upstream product. */
const TITLES = { buffered: 'a buffered product', stream: 'a streaming product' } as const
const TEXT = JSON.stringify({ words: 'the same words again and again. '.repeat(100) })

function product(kind: (typeof KINDS)[number], url: string) {
  return {
    product: kind,
    title: kind,
    summary: 'Words.',
    upstream: {
      url: `${url}/words`,
      headers: { 'x-key': 'env:WORDS_KEY' },
      timeout_seconds: 2,
      ...(kind === 'stream' ? { stream: true } : { max_bytes: 10_000 }),
    },
    operations: {
      [kind === 'stream' ? 'getStream' : 'getWords']: {
        route: `GET /v1/${kind}`,
        summary: 'Words.',
        price: '0.01',
        response: kind === 'stream' ? {} : { type: 'object', required: ['words'] },
      },
    },
  }
}

describe('an answer from an upstream', () => {
  let live: LiveGateway
  let upstream: UpstreamServer
  let logged = ''
  const transfers = (): number => live.settler.transfers.length
  const url = (kind: string): string => `${live.url}/v1/${kind}`
  const answers = (headers: Record<string, string>, body: Buffer | string): void => {
    upstream.answer = (response) => response.writeHead(200, headers).end(body)
  }
  /** Sends a request as a client that does not decode the answer. */
  async function raw(kind: string, headers: Record<string, string> = {}) {
    const header = await payment(url(kind), live.wallet)
    const sent = httpRequest(url(kind), { headers: { 'payment-signature': header, ...headers } }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk as Buffer)
    return {
      status: answer.statusCode,
      headers: answer.headers,
      trailers: answer.trailers,
      body: Buffer.concat(chunks),
    }
  }

  before(async () => {
    upstream = await openUpstreamServer()
    live = await openLiveGateway({
      catalog: {
        'documents.json': readFileSync(join(root, 'catalog/documents.json'), 'utf8'),
        'buffered.json': product('buffered', upstream.url),
        'stream.json': product('stream', upstream.url),
      },
      environment: { WORDS_KEY: SECRET },
      overrides: { log: createLog('trace', { write: (line) => void (logged += line) }) },
    })
    expect(live.gateway.issues).to.deep.equal([])
  })
  after(async () => {
    await live.close()
    await upstream.close()
  })
  beforeEach(() => {
    upstream.requests.length = 0
  })

  for (const [encoding, pack] of [
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
  ] as const) {
    it(`that is compressed with ${encoding} is decompressed, checked and sold by a buffered product`, async () => {
      const before = transfers()
      answers({ 'content-type': 'application/json', 'content-encoding': encoding }, pack(TEXT))
      const { status, headers, body } = await raw('buffered', { 'accept-encoding': 'identity' })
      expect([status, headers['content-encoding'], body.toString()]).to.deep.equal([200, undefined, TEXT])
      expect(transfers()).to.equal(before + 1)
    })

    it(`that is compressed with ${encoding} is passed on unchanged by a streaming product`, async () => {
      const packed = pack(TEXT)
      answers({ 'content-type': 'application/json', 'content-encoding': encoding }, packed)
      const { status, headers, body } = await raw('stream', { 'accept-encoding': encoding })
      expect(upstream.requests.at(-1)?.headers['accept-encoding']).to.equal(encoding)
      expect([status, headers['content-encoding'], body.equals(packed)]).to.deep.equal([200, encoding, true])
    })
  }

  it('costs nothing if it decompresses to more than max_bytes', async () => {
    const before = transfers()
    answers({ 'content-type': 'application/json', 'content-encoding': 'gzip' }, gzipSync(' '.repeat(50_000_000) + TEXT))
    expect((await raw('buffered')).status).to.equal(502)
    expect(transfers()).to.equal(before)
    answers({ 'content-type': 'application/json' }, TEXT)
    expect((await raw('buffered')).status).to.equal(200)
  })

  it('costs nothing if its compression is invalid or it is empty', async () => {
    const before = transfers()
    answers({ 'content-type': 'application/json', 'content-encoding': 'gzip' }, TEXT)
    expect((await raw('buffered')).status).to.equal(502)
    answers({ 'content-type': 'application/json' }, '')
    expect((await raw('buffered')).status).to.equal(502)
    upstream.answer = (response) => response.writeHead(204).end()
    expect((await raw('buffered')).status).to.equal(502)
    expect(transfers()).to.equal(before)
    answers({ 'content-type': 'application/json' }, TEXT)
    expect((await raw('buffered')).status).to.equal(200)
  })

  for (const kind of KINDS)
    it(`with trailers is delivered complete and without them by ${TITLES[kind]}`, async () => {
      upstream.answer = (response) => {
        response.writeHead(200, { 'content-type': 'application/json', trailer: 'x-checksum' })
        response.write(TEXT.slice(0, 100))
        response.addTrailers({ 'x-checksum': 'inside' })
        response.end(TEXT.slice(100))
      }
      const { status, headers, trailers, body } = await raw(kind)
      expect([status, body.toString()]).to.deep.equal([200, TEXT])
      expect(headers).not.to.have.property('trailer')
      expect(trailers).to.deep.equal({})
    })

  for (const kind of KINDS)
    it(`is not fetched by ${TITLES[kind]} for a HEAD request, which gets the headers of the 402`, async () => {
      const before = transfers()
      const head = await fetch(url(kind), { method: 'HEAD' })
      expect([head.status, await head.text()]).to.deep.equal([402, ''])
      expect(head.headers.get('payment-required')).to.be.a('string')
      await send(url(kind), await payment(url(kind), live.wallet), 2, { method: 'HEAD' })
      expect(upstream.requests).to.deep.equal([])
      expect(transfers()).to.equal(before)
    })

  it('is cancelled and costs nothing if the caller disconnects before it arrives', async () => {
    const before = transfers()
    let isCancelled = false
    upstream.answer = (response) => void response.on('close', () => (isCancelled = true))
    const header = await payment(url('buffered'), live.wallet)
    const caller = new AbortController()
    const aborted = send(url('buffered'), header, 2, { signal: caller.signal }).catch(() => 'aborted')
    await until(() => upstream.requests.length === 1)
    caller.abort()
    expect(await aborted).to.equal('aborted')
    await until(() => isCancelled)
    expect(transfers()).to.equal(before)
  })

  it('never reveals our secret for the upstream in documents, answers, errors or the log', async () => {
    upstream.answer = (response, { headers }) =>
      response.writeHead(headers['x-key'] === SECRET ? 500 : 401).end(`no: ${JSON.stringify(headers)}`)
    const shown: string[] = []
    for (const kind of KINDS) {
      const failed = await buy(url(kind), live.wallet)
      expect(failed.status).to.equal(502)
      shown.push(JSON.stringify([await json(failed), [...failed.headers]]))
    }
    for (const path of ['/openapi.json', '/pricing.json', '/llms.txt', '/.well-known/x402', '/health', '/v1/stats'])
      shown.push(await (await live.get(path)).text())
    shown.push(JSON.stringify(live.gateway.current.catalog.products.map(({ upstream }) => upstream)), logged)
    expect(logged).to.contain('a product failed')
    for (const text of shown) expect(text).not.to.contain(SECRET)
  })
})
