import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { createLog } from '../../gateway/observe/log.ts'
import { buy, json, payment, send } from '../support/agent.ts'
import { openPlace, type Place, root, until } from './place.ts'
import { openSource, type Source } from './source.ts'

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
  let place: Place
  let source: Source
  let logged = ''
  const transfers = (): number => place.settler.transfers.length
  const url = (kind: string): string => `${place.url}/v1/${kind}`
  const answers = (headers: Record<string, string>, body: Buffer | string): void => {
    source.answer = (response) => response.writeHead(200, headers).end(body)
  }
  /** As a client that decodes nothing by itself. */
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
    source = await openSource()
    place = await openPlace({
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
    it(`that is packed with ${encoding} is unpacked, checked and sold where it is buffered`, async () => {
      const before = transfers()
      answers({ 'content-type': 'application/json', 'content-encoding': encoding }, pack(TEXT))
      const { status, headers, body } = await raw('buffered', { 'accept-encoding': 'identity' })
      expect([status, headers['content-encoding'], body.toString()]).to.deep.equal([200, undefined, TEXT])
      expect(transfers()).to.equal(before + 1)
    })

    it(`that is packed with ${encoding} passes through as it is where it is a stream`, async () => {
      const packed = pack(TEXT)
      answers({ 'content-type': 'application/json', 'content-encoding': encoding }, packed)
      const { status, headers, body } = await raw('stream', { 'accept-encoding': encoding })
      expect(source.asked.at(-1)?.headers['accept-encoding']).to.equal(encoding)
      expect([status, headers['content-encoding'], body.equals(packed)]).to.deep.equal([200, encoding, true])
    })
  }

  it('that unpacks to more than was agreed costs nothing', async () => {
    const before = transfers()
    answers({ 'content-type': 'application/json', 'content-encoding': 'gzip' }, gzipSync(' '.repeat(50_000_000) + TEXT))
    expect((await raw('buffered')).status).to.equal(502)
    expect(transfers()).to.equal(before)
    answers({ 'content-type': 'application/json' }, TEXT)
    expect((await raw('buffered')).status).to.equal(200)
  })

  it('that is packed wrongly, or is none, costs nothing', async () => {
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
    it(`arrives whole with trailers behind it, which stay inside (${kind})`, async () => {
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
    it(`is not asked for by HEAD, which answers the head of the 402 (${kind})`, async () => {
      const before = transfers()
      const head = await fetch(url(kind), { method: 'HEAD' })
      expect([head.status, await head.text()]).to.deep.equal([402, ''])
      expect(head.headers.get('payment-required')).to.be.a('string')
      await send(url(kind), await payment(url(kind), place.wallet), 2, { method: 'HEAD' })
      expect(source.asked).to.deep.equal([])
      expect(transfers()).to.equal(before)
    })

  it('is given up, and costs nothing, where the caller leaves before it has come', async () => {
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

  it('shows its secret nowhere: in no document, no answer, no failure and no log', async () => {
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
