import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { createLog } from '../../gateway/observe/log.ts'
import { buy, json, payment, send } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway, root, until } from './live-gateway.ts'
import { openUpstreamServer, type UpstreamServer } from './upstream-server.ts'

const SECRET = 's3cret-of-the-upstream'
const KINDS = ['buffered', 'stream'] as const
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

describe('an answer of an upstream', () => {
  let place: LiveGateway
  let source: UpstreamServer
  let logged = ''
  const transfers = (): number => place.settler.transfers.length
  const url = (kind: string): string => `${place.url}/v1/${kind}`
  const answers = (headers: Record<string, string>, body: Buffer | string): void => {
    source.answer = (response) => response.writeHead(200, headers).end(body)
  }
  /** Sends a request as a client that does not decode the answer. */
  async function raw(kind: string, headers: Record<string, string> = {}) {
    const header = await payment(url(kind), place.wallet)
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
    source = await openUpstreamServer()
    place = await openLiveGateway({
      catalog: {
        'documents.json': readFileSync(join(root, 'catalog/documents.json'), 'utf8'),
        'buffered.json': product('buffered', source.url),
        'stream.json': product('stream', source.url),
      },
      environment: { WORDS_KEY: SECRET },
      overrides: { log: createLog('trace', { write: (line) => void (logged += line) }) },
    })
    expect(place.gateway.issues).to.deep.equal([])
  })
  after(async () => {
    await place.close()
    await source.close()
  })
  beforeEach(() => {
    source.asked.length = 0
  })

  for (const [encoding, pack] of [
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
  ] as const) {
    it(`compressed with ${encoding} is decompressed, checked and sold if it is buffered`, async () => {
      const before = transfers()
      answers({ 'content-type': 'application/json', 'content-encoding': encoding }, pack(TEXT))
      const { status, headers, body } = await raw('buffered', { 'accept-encoding': 'identity' })
      expect([status, headers['content-encoding'], body.toString()]).to.deep.equal([200, undefined, TEXT])
      expect(transfers()).to.equal(before + 1)
    })

    it(`compressed with ${encoding} is passed on unchanged if it is a stream`, async () => {
      const packed = pack(TEXT)
      answers({ 'content-type': 'application/json', 'content-encoding': encoding }, packed)
      const { status, headers, body } = await raw('stream', { 'accept-encoding': encoding })
      expect(source.asked.at(-1)?.headers['accept-encoding']).to.equal(encoding)
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
    source.answer = (response) => response.writeHead(204).end()
    expect((await raw('buffered')).status).to.equal(502)
    expect(transfers()).to.equal(before)
    answers({ 'content-type': 'application/json' }, TEXT)
    expect((await raw('buffered')).status).to.equal(200)
  })

  for (const kind of KINDS)
    it(`arrives complete if it has trailers, which are not passed on (${kind})`, async () => {
      source.answer = (response) => {
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
    it(`is not requested by HEAD, which returns the headers of the 402 (${kind})`, async () => {
      const before = transfers()
      const head = await fetch(url(kind), { method: 'HEAD' })
      expect([head.status, await head.text()]).to.deep.equal([402, ''])
      expect(head.headers.get('payment-required')).to.be.a('string')
      await send(url(kind), await payment(url(kind), place.wallet), 2, { method: 'HEAD' })
      expect(source.asked).to.deep.equal([])
      expect(transfers()).to.equal(before)
    })

  it('is cancelled and costs nothing if the caller leaves before it arrives', async () => {
    const before = transfers()
    let isLeft = false
    source.answer = (response) => void response.on('close', () => (isLeft = true))
    const header = await payment(url('buffered'), place.wallet)
    const leaving = new AbortController()
    const left = send(url('buffered'), header, 2, { signal: leaving.signal }).catch(() => 'left')
    await until(() => source.asked.length === 1)
    leaving.abort()
    expect(await left).to.equal('left')
    await until(() => isLeft)
    expect(transfers()).to.equal(before)
  })

  it('never reveals the secret of the upstream: in documents, answers, errors or the log', async () => {
    source.answer = (response, { headers }) =>
      response.writeHead(headers['x-key'] === SECRET ? 500 : 401).end(`no: ${JSON.stringify(headers)}`)
    const shown: string[] = []
    for (const kind of KINDS) {
      const failed = await buy(url(kind), place.wallet)
      expect(failed.status).to.equal(502)
      shown.push(JSON.stringify([await json(failed), [...failed.headers]]))
    }
    for (const path of ['/openapi.json', '/pricing.json', '/llms.txt', '/.well-known/x402', '/health', '/v1/stats'])
      shown.push(await (await place.get(path)).text())
    shown.push(JSON.stringify(place.gateway.current.catalog.products.map(({ upstream }) => upstream)), logged)
    expect(logged).to.contain('a product failed')
    for (const text of shown) expect(text).not.to.contain(SECRET)
  })
})
