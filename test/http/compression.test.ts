import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { AnswerBody } from '../../gateway/plugin/answer-body.ts'
import { constant } from '../../gateway/plugin/immutable.ts'
import { Reply } from '../../gateway/plugin/plugin.ts'
import { gzipped } from '../../gateway/http/respond.ts'
import { rawRequest, requestLine } from './raw.ts'
import { openTransportGateway, PRICED, type TransportGateway, route } from './transport-gateway.ts'

const LONG = { words: 'gold and silver. '.repeat(200) }
const TAGGED = { headers: { etag: '"t1"', 'cache-control': 'public, max-age=60' } }
const DOCUMENT = constant(new Reply({ ...LONG }, TAGGED))
const REPEATED = 'data: gold\n'.repeat(200)

describe('a long free answer', () => {
  let gateway: TransportGateway
  before(async () => {
    gateway = await openTransportGateway([
      route('getLong', 'GET /v1/long', {}, () => new Reply(LONG, TAGGED)),
      route('getDocument', 'GET /v1/document', {}, () => DOCUMENT),
      route('getShort', 'GET /v1/short'),
      route('getPaid', 'GET /v1/paid', PRICED, () => LONG),
      route('putLong', 'POST /v1/put', {}, () => LONG),
      route('getImage', 'GET /v1/image', {}, () => new Reply(REPEATED, { headers: { 'content-type': 'image/png' } })),
    ])
  })
  after(() => gateway.close())

  async function get(path: string, { accepts = 'gzip', method = 'GET', headers = [] as readonly string[] } = {}) {
    const text = requestLine(method, path, [...(accepts === '' ? [] : [`Accept-Encoding: ${accepts}`]), ...headers])
    const { status, head, body } = await rawRequest(gateway.port, text)
    const header = (name: string): string | null => new RegExp(`^${name}: (.*)\\r?$`, 'im').exec(head)?.[1] ?? null
    return { status, header, bytes: Buffer.from(body, 'latin1') }
  }

  it('is compressed for callers that accept gzip, and says so to caches', async () => {
    for (const [path, accepts] of [
      ['/v1/long', 'gzip'],
      ['/v1/document', 'GZIP'],
      ['/v1/document', 'br, gzip;q=0.5'],
      ['/v1/long', '*;q=0.1'],
    ] as const) {
      const { header, bytes } = await get(path, { accepts })
      expect([header('content-encoding'), header('vary'), header('etag')], accepts).to.deep.equal([
        'gzip',
        'Accept-Encoding',
        'W/"t1"',
      ])
      expect(Number(header('content-length')))
        .to.equal(bytes.length)
        .and.to.be.lessThan(200)
      expect(JSON.parse(gunzipSync(bytes).toString())).to.deep.equal(LONG)
    }
  })

  it('is sent uncompressed to other callers, with its own ETag', async () => {
    for (const accepts of ['', 'identity', 'br', 'gzip;q=0', '*, gzip;q=0', '*;q=0', 'gzip;q=x', 'gzippy']) {
      const { header, bytes } = await get('/v1/long', { accepts })
      const sentHeaders = [header('content-encoding'), header('vary'), header('etag')]
      expect(sentHeaders, accepts).to.deep.equal([null, 'Accept-Encoding', '"t1"'])
      expect(JSON.parse(bytes.toString())).to.deep.equal(LONG)
    }
  })

  it('has the same headers for HEAD, and is 304 for callers that have it compressed or plain', async () => {
    const [whole, head] = [await get('/v1/long'), await get('/v1/long', { method: 'HEAD' })]
    expect(head.bytes).to.have.length(0)
    for (const name of ['content-encoding', 'content-length', 'etag', 'vary'])
      expect(head.header(name), name).to.equal(whole.header(name))
    for (const tag of ['"t1"', 'W/"t1"']) {
      const known = await get('/v1/long', { headers: [`If-None-Match: ${tag}`] })
      expect([known.status, known.header('etag'), known.header('vary'), known.bytes.length]).to.deep.equal([
        304,
        'W/"t1"',
        'Accept-Encoding',
        0,
      ])
    }
  })

  it('is not compressed if it is paid, an answer to POST, short, or not text', async () => {
    const paid = await get('/v1/paid', { headers: ['X-PAYMENT: paid'] })
    expect([paid.status, paid.header('content-encoding'), paid.bytes.toString()]).to.deep.equal([
      200,
      null,
      JSON.stringify(LONG),
    ])
    for (const [path, method] of [
      ['/v1/put', 'POST'],
      ['/v1/short', 'GET'],
      ['/v1/image', 'GET'],
      ['/v1/paid', 'GET'],
    ] as const)
      expect((await get(path, { method })).header('content-encoding'), path).to.equal(null)
  })

  it('can be read by every client that decompresses', async () => {
    const answer = await fetch(`http://127.0.0.1:${gateway.port}/v1/long`)
    expect(answer.headers.get('content-encoding')).to.equal('gzip')
    expect(await answer.json()).to.deep.equal(LONG)
  })
})

describe('compression', () => {
  it('runs only once for the same bytes', () => {
    const body = AnswerBody.of('gold '.repeat(1000))
    expect(gzipped(body)).to.equal(gzipped(body))
  })
})
