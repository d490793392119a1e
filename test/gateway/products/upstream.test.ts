import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { Edition } from '../../../gateway/products/edition.ts'
import { StreamedReply } from '../../../gateway/products/upstream.ts'
import type { ServiceError } from '../../../gateway/errors.ts'
import { callOperation } from '../../../gateway/testing/testing.ts'
import { openCatalog, openEditionBuilder, type TestCatalog } from '../../support/catalog.ts'

const asOf = new Date(0)

describe('an upstream product', () => {
  let server: Server
  let url: string
  let respond: (request: IncomingMessage, response: ServerResponse) => void
  let catalog: TestCatalog
  let builder: Awaited<ReturnType<typeof openEditionBuilder>>
  let edition: Edition

  before(async () => {
    server = createServer((request, response) => respond(request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const venue = { type: 'object', required: ['venue'], properties: { venue: { type: 'string' } } }
    const getBasis = {
      route: 'GET /v1/x/basis/{venue}',
      summary: 'Basis.',
      price: '0.005',
      params: venue,
      query: { type: 'object', properties: { days: { type: 'array', items: { type: 'integer' } } } },
      response: { type: 'object', required: ['basis'] },
    }
    catalog = openCatalog({
      'x/impatient.json': {
        product: 'impatient',
        family: 'x',
        title: 'Basis',
        summary: 'Basis by venue, soon or never.',
        upstream: { url: `${url}/basis/{venue}`, timeout_seconds: 0.2 },
        operations: { getBasisSoon: { ...getBasis, route: 'GET /v1/x/impatient/{venue}' } },
      },
      'x/basis.json': {
        product: 'basis',
        family: 'x',
        title: 'Basis',
        summary: 'Basis by venue.',
        upstream: {
          url: `${url}/basis/{venue}`,
          headers: { authorization: 'env:KEY' },
          max_bytes: 1000,
        },
        operations: {
          getBasis,
          setBasis: {
            route: 'POST /v1/x/basis/{venue}',
            summary: 'Basis of what is sent.',
            price: '0.005',
            params: venue,
            body: { type: 'object' },
            response: { type: 'object' },
          },
        },
      },
    })
    catalog.write('x/mapped.json', {
      product: 'mapped',
      family: 'x',
      title: 'Mapped',
      summary: 'Calls an upstream in its own way.',
      upstream: { url: `${url}/api/`, headers: { authorization: 'env:KEY' }, query: { key: 'env:QUERY_KEY' } },
      operations: {
        searchMapped: {
          route: 'GET /v1/x/mapped/{venue}',
          summary: 'Searches.',
          price: '0.005',
          params: venue,
          query: {
            type: 'object',
            properties: { trace: { type: 'string' }, ids: { type: 'array', items: { type: 'integer' } } },
          },
          response: { type: 'object' },
          upstream: {
            url: '/venues/{venue}.json',
            headers: { accept: 'application/vnd.api+json' },
            parameters: [
              { name: 'X-Trace', field: 'trace', in: 'header' },
              { name: 'id', field: 'ids', explode: false },
            ],
          },
        },
        deleteMapped: {
          route: 'DELETE /v1/x/mapped/{venue}',
          summary: 'Deletes.',
          price: '0.005',
          params: venue,
          response: { anyOf: [{ type: 'object' }, { type: 'null' }] },
          upstream: { url: `${url}/elsewhere/{venue}`, query: { own: 'env:QUERY_KEY' } },
        },
      },
    })
    builder = await openEditionBuilder(catalog, { KEY: 'Bearer s3cret', QUERY_KEY: 'k&y' })
    edition = (await builder.build()).edition
  })

  after(async () => {
    await edition.stop()
    await builder.close()
    catalog.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const ask = async (venue = 'deribit', query = {}) =>
    callOperation(edition, 'getBasis', { params: { venue }, query, asOf })
  const failure = async (venue?: string) => ask(venue).catch((error: unknown) => error)

  it('is called with parameters, query and secret, and its JSON is the answer', async () => {
    let received: IncomingMessage | undefined
    respond = (request, response) => {
      received = request
      response.end('{"basis": 0.02}')
    }
    expect(await ask('a/b?c#d', { days: ['1', '2'] })).to.deep.equal({ basis: 0.02 })
    expect(received?.url).to.equal('/basis/a%2Fb%3Fc%23d?days=1&days=2')
    expect(received?.headers).to.include({ authorization: 'Bearer s3cret', accept: 'application/json' })
  })

  const mapped = async (id: string, query = {}, status = 200): Promise<readonly [unknown, IncomingMessage]> => {
    let received: IncomingMessage | undefined
    respond = (request, response) => {
      received = request
      response.writeHead(status).end(status === 204 ? undefined : '{}')
    }
    const answer: unknown = await callOperation(edition, id, { params: { venue: 'deribit' }, query, asOf })
    return [answer, received as IncomingMessage]
  }

  it('is called below its address, with fields in other places, as the operation says', async () => {
    const [, { url: target, headers }] = await mapped('searchMapped', { trace: 't-1', ids: ['1', '2'] })
    expect(target).to.equal('/api/venues/deribit.json?id=1,2&key=k%26y')
    expect(headers).to.include({
      'x-trace': 't-1',
      authorization: 'Bearer s3cret',
      accept: 'application/vnd.api+json',
    })
  })

  it('is called at another address, if the operation has its own', async () => {
    const [, { method, url: target }] = await mapped('deleteMapped')
    expect(`${method} ${target}`).to.equal('DELETE /elsewhere/deribit?key=k%26y&own=k%26y')
  })

  it('refuses text that a header cannot hold, without calling it', async () => {
    const refused = mapped('searchMapped', { trace: 'a\r\nauthorization: me' })
    expect(await refused.catch((error: unknown) => error)).to.include({ code: 'validation_failed' })
  })

  it('answers null for 204 if the schema allows it, and fails otherwise', async () => {
    expect((await mapped('deleteMapped', {}, 204))[0]).to.equal(null)
    const failed = mapped('searchMapped', {}, 204)
    expect(await failed.catch((error: unknown) => error)).to.include({ code: 'product_failed' })
  })

  it('names each secret that is missing where the document names it', async () => {
    const { close, build } = await openEditionBuilder(catalog, { KEY: 'Bearer s3cret' })
    const { issues, edition: without } = await build()
    expect(issues.map(({ pointer, rule }) => `${pointer} ${rule}`)).to.have.members([
      '/upstream/query/key secret',
      '/operations/deleteMapped/upstream/query/own secret',
    ])
    await without.stop()
    await close()
  })

  it('receives the body as JSON', async () => {
    const chunks: Buffer[] = []
    respond = (request, response) => {
      request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => response.end('{}'))
    }
    await callOperation(edition, 'setBasis', { params: { venue: 'x' }, body: { a: 1 }, asOf })
    expect(Buffer.concat(chunks).toString()).to.equal('{"a":1}')
  })

  it('is never called above its path', async () => {
    respond = (_, response) => response.end('{"basis": 1}')
    expect(await failure('..')).to.include({ code: 'validation_failed' })
  })

  it('is not paused because callers send text that no address can hold', async () => {
    respond = (_, response) => response.end('{"basis": 1}')
    for (let times = 0; times < 5; times++) expect(await failure('\ud800')).to.include({ code: 'validation_failed' })
    expect(edition.status()).to.deep.equal([
      { product: 'basis', status: 'ok' },
      { product: 'impatient', status: 'ok' },
      { product: 'mapped', status: 'ok' },
    ])
  })

  const answers: readonly (readonly [string, (response: ServerResponse) => void, string])[] = [
    ['does not answer in JSON', (response) => response.end('<html>'), 'product_failed'],
    ['sends an answer that breaks the schema', (response) => response.end('{}'), 'product_failed'],
    [
      'sends more bytes than the limit',
      (response) => response.end(JSON.stringify({ basis: 'x'.repeat(2000) })),
      'product_failed',
    ],
    ['redirects', (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), 'product_failed'],
    ['answers 500', (response) => response.writeHead(500).end('{"basis": 1}'), 'product_failed'],
    ['answers 404', (response) => response.writeHead(404).end(), 'not_found'],
    ['is busy', (response) => response.writeHead(503, { 'retry-after': '7' }).end(), 'product_suspended'],
    ['closes the connection', (response) => response.destroy(), 'product_failed'],
  ]
  for (const [title, answer, code] of answers)
    it(`answers ${code} if the upstream ${title}`, async () => {
      respond = (_, response) => answer(response)
      edition = (await builder.build()).edition
      expect(await failure()).to.include({ code })
    })

  const inTwoMinutes = (): string => new Date(Date.now() + 120_000).toUTCString()
  const waits: readonly (readonly [says: string, header: () => string | undefined, least: number, most: number])[] = [
    ['seconds', () => '7', 7, 7],
    ['a date', inTwoMinutes, 100, 121],
    ['a date of the past', () => new Date(0).toUTCString(), 1, 1],
    ['no wait', () => '0', 1, 1],
    ['a year', () => '31536000', 3600, 3600],
    ['more than a number can hold', () => '9'.repeat(400), 3600, 3600],
    ['a date of the year 9999', () => 'Fri, 31 Dec 9999 23:59:59 GMT', 3600, 3600],
    ['less than nothing', () => '-5', 60, 60],
    ['a part of a second', () => '1.5', 60, 60],
    ['another number', () => '0x10', 60, 60],
    ['nothing that can be read', () => 'soon', 60, 60],
    ['nothing', () => undefined, 60, 60],
  ]
  for (const [says, header, least, most] of waits)
    it(`tells its caller to wait for ${least === most ? least : 'about 120'} seconds if a busy upstream says ${says}`, async () => {
      const value = header()
      respond = (_, response) => response.writeHead(503, value === undefined ? {} : { 'retry-after': value }).end()
      edition = (await builder.build()).edition
      const { headers } = (await failure()) as ServiceError
      expect(headers['retry-after']).to.match(/^\d+$/)
      expect(Number(headers['retry-after'])).to.be.within(least, most)
    })

  it('passes the headers of a stream on, without a Retry-After, which says nothing about an answer', () => {
    const headers = { 'content-type': 'text/plain', 'retry-after': 'soon' }
    const response = { status: 200, headers, pipe: () => Promise.resolve(), discard: () => {} }
    expect(new StreamedReply(response).headers).to.deep.equal({ 'content-type': 'text/plain' })
  })

  it('answers product_timeout if the upstream takes too long', async () => {
    respond = () => {}
    edition = (await builder.build()).edition
    const call = callOperation(edition, 'getBasisSoon', { params: { venue: 'deribit' }, asOf })
    expect(await call.catch((error: unknown) => error)).to.include({ code: 'product_timeout' })
  })
})
