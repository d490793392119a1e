import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { buy, json, offer, payment, receipt, send } from '../support/agent.ts'
import { openPlace, type Place, until } from './place.ts'
import { openSource, type Source } from './source.ts'

const NAME = { type: 'object', required: ['name'], properties: { name: { type: 'string', maxLength: 50 } } }

const FILES = (url: string) => ({
  product: 'files',
  title: 'Files',
  summary: 'Large files.',
  upstream: {
    url: `${url}/files/{name}`,
    headers: { authorization: 'env:FILES_KEY' },
    timeout_seconds: 1,
    stream: true,
  },
  operations: {
    getFile: {
      route: 'GET /v1/files/{name}',
      summary: 'A file.',
      price: '0.01',
      params: NAME,
      query: { type: 'object', properties: { part: { type: 'integer' } } },
    },
    getFreeFile: { route: 'GET /v1/free/{name}', summary: 'A file.', price: 'free', params: NAME, response: {} },
  },
})

describe('a stream of an upstream', () => {
  let place: Place
  let source: Source
  let url: string

  before(async () => {
    source = await openSource()
    place = await openPlace({
      catalog: { 'files.json': FILES(source.url) },
      environment: { FILES_KEY: 'Bearer s3cret' },
    })
    url = `${place.url}/v1/files/big`
    expect(place.gateway.mistakes).to.deep.equal([])
  })
  after(async () => {
    await place.close()
    await source.close()
  })
  beforeEach(() => {
    source.asked.length = 0
    source.answer = (response) => response.end('bytes')
  })

  const transfers = () => place.settler.transfers.length

  /** Sends a payment and resolves as soon as the head of the answer is there. */
  async function head(header: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const sent = httpRequest(url, { headers: { 'payment-signature': header, ...headers } })
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return answer
  }

  it('is settled once the upstream has begun to answer well, and only then passed on, while it arrives', async () => {
    const before = transfers()
    let finish = (): void => {}
    source.answer = (response) => {
      expect(transfers()).to.equal(before)
      response.writeHead(200, { 'content-type': 'application/x-thing' }).write('first ')
      finish = () => response.end('last')
    }
    const answer = await head(await payment(url, place.wallet))
    expect(answer.statusCode).to.equal(200)
    expect(answer.headers['content-type']).to.equal('application/x-thing')
    expect(answer.headers['cache-control']).to.equal('private, no-store')
    expect(answer.headers['payment-response']).to.be.a('string')
    const [first] = (await once(answer, 'data')) as [Buffer]
    expect(first.toString()).to.equal('first ')
    expect(transfers()).to.equal(before + 1)
    finish()
    const [last] = (await once(answer, 'data')) as [Buffer]
    expect(last.toString()).to.equal('last')
  })

  it('asks for payment before the upstream hears of the call', async () => {
    expect((await offer(url)).response.status).to.equal(402)
    expect(source.asked).to.deep.equal([])
  })

  const failures: readonly (readonly [string, Source['answer'], number, string])[] = [
    ['fails', (response) => response.writeHead(500).end('no'), 502, 'product_failed'],
    [
      'redirects',
      (response) => response.writeHead(302, { location: 'http://169.254.169.254/secrets' }).end(),
      502,
      'product_failed',
    ],
    ['refuses our key', (response) => response.writeHead(401).end(), 502, 'product_failed'],
    ['has no such thing', (response) => response.writeHead(404).end(), 404, 'not_found'],
    ['refuses the request', (response) => response.writeHead(416).end(), 422, 'validation_failed'],
    ['is busy', (response) => response.writeHead(503, { 'retry-after': '9' }).end(), 503, 'product_suspended'],
    ['sends nothing', (response) => response.writeHead(204).end(), 502, 'product_failed'],
    ['says nothing', () => {}, 504, 'product_timeout'],
    ['hangs up', (response) => response.destroy(), 502, 'product_failed'],
  ]
  for (const [title, answer, status, code] of failures)
    it(`costs nothing where the upstream ${title}: ${status}`, async () => {
      const before = transfers()
      source.answer = answer
      const refused = await buy(url, place.wallet)
      expect([refused.status, (await json(refused))['code']]).to.deep.equal([status, code])
      expect(transfers()).to.equal(before)
      expect(source.asked).to.have.length(1)
      source.answer = (response) => response.end('well')
      expect((await buy(url, place.wallet)).status).to.equal(200)
    })

  it('is dropped, and nothing of it leaves, where the payment cannot be settled', async () => {
    place.settler.next('revert')
    let closed = false
    source.answer = (response) => {
      response.write('paid content')
      response.on('close', () => (closed = true))
    }
    const refused = await buy(url, place.wallet)
    expect(refused.status).to.equal(402)
    expect(await refused.text()).not.to.contain('paid content')
    await until(() => closed)
  })

  it('may be fetched again with the same payment while that is valid, and is charged once', async () => {
    const before = transfers()
    const header = await payment(url, place.wallet)
    const first = await send(url, header)
    expect(await first.text()).to.equal('bytes')
    source.answer = (response) => response.end('bytes again')
    const [again, twin] = await Promise.all([send(url, header), send(url, header)])
    expect([await again.text(), await twin.text()]).to.deep.equal(['bytes again', 'bytes again'])
    expect(receipt(again)).to.deep.equal(receipt(first))
    expect(again.headers.get('idempotent-replay')).to.equal('true')
    expect(transfers()).to.equal(before + 1)
    expect(source.asked).to.have.length(3)
    const other = await send(`${place.url}/v1/files/other`, header)
    expect([other.status, (await json(other))['code']]).to.deep.equal([409, 'payment_conflict'])
    place.advance(301)
    const late = await send(url, header)
    expect([late.status, (await json(late))['code']]).to.deep.equal([402, 'payment_already_used'])
    expect(source.asked).to.have.length(3)
    place.advance(-301)
  })

  it('is charged once for twins at the same time, and given to both', async () => {
    const before = transfers()
    const header = await payment(url, place.wallet)
    const answers = await Promise.all([send(url, header), send(url, header), send(url, header)])
    expect(await Promise.all(answers.map((answer) => answer.text()))).to.deep.equal(['bytes', 'bytes', 'bytes'])
    expect(transfers()).to.equal(before + 1)
  })

  it('goes on from where it was broken off, with the same payment', async () => {
    source.answer = (response, { headers }) =>
      headers.range === 'bytes=3-'
        ? response.writeHead(206, { 'content-range': 'bytes 3-4/5', 'content-length': '2' }).end('es')
        : response.end('bytes')
    const header = await payment(url, place.wallet)
    await (await send(url, header)).text()
    const rest = await send(url, header, 2, { headers: { range: 'bytes=3-' } })
    expect([rest.status, await rest.text(), rest.headers.get('content-range')]).to.deep.equal([
      206,
      'es',
      'bytes 3-4/5',
    ])
  })

  it('is sent for with nothing of the caller but what was asked, and our secret', async () => {
    const header = await payment(url, place.wallet)
    const answer = await head(header, {
      accept: 'video/mp4',
      authorization: 'Bearer callers',
      cookie: 'a=b',
      connection: 'keep-alive, x-forwarded-for',
      'x-service-token': 'token',
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-host': 'evil.example',
      'idempotency-key': '1234567890123456',
      expect: '100-continue',
      te: 'trailers',
      'proxy-authorization': 'Basic',
      upgrade: 'h2c',
    })
    answer.resume()
    const [asked] = source.asked
    expect(asked?.url).to.equal('/files/big')
    const { host, 'x-call-id': call, connection, ...rest } = asked?.headers ?? {}
    expect(host).to.equal(new URL(source.url).host)
    expect(call).to.match(/^[0-9a-f-]{36}$/)
    expect(connection).to.be.oneOf(['keep-alive', undefined])
    expect(rest).to.deep.equal({ accept: 'video/mp4', authorization: 'Bearer s3cret' })
  })

  it('lets nothing of the upstream leave but the body and what describes it', async () => {
    source.answer = (response) =>
      response
        .writeHead(200, {
          'content-type': 'text/html',
          'content-disposition': 'attachment; filename="a.html"',
          'set-cookie': ['a=b', 'c=d'],
          server: 'secret/1.0',
          'www-authenticate': 'Basic',
          location: 'http://internal/',
          'access-control-allow-origin': 'http://internal',
          'content-security-policy': 'default-src *',
          'x-internal': 'yes',
          'proxy-authenticate': 'Basic',
          trailer: 'x-late',
          'payment-response': 'forged',
          'alt-svc': 'h3=":443"',
        })
        .end('<script>alert(1)</script>')
    const answer = await buy(url, place.wallet)
    const headers = Object.fromEntries(answer.headers)
    expect(headers).to.include({
      'content-type': 'text/html',
      'content-disposition': 'attachment; filename="a.html"',
      'access-control-allow-origin': '*',
      'content-security-policy': `default-src 'none'; frame-ancestors 'none'`,
    })
    expect(receipt(answer)).to.include({ success: true })
    for (const name of [
      'set-cookie',
      'server',
      'www-authenticate',
      'location',
      'x-internal',
      'proxy-authenticate',
      'trailer',
      'alt-svc',
    ])
      expect(headers).not.to.have.property(name)
  })

  it('waits for a caller who reads slowly, instead of filling memory', async () => {
    const TOTAL = 64 * 1024 * 1024
    let written = 0
    source.answer = (response) => {
      const chunk = Buffer.alloc(256 * 1024)
      const more = (): void => {
        while (written < TOTAL) {
          written += chunk.length
          if (!response.write(chunk)) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    }
    const answer = await head(await payment(url, place.wallet))
    answer.pause()
    let last = -1
    while (last !== written) {
      last = written
      await new Promise((wake) => setTimeout(wake, 100))
    }
    expect(written).to.be.lessThan(TOTAL / 2)
    let size = 0
    for await (const chunk of answer) size += (chunk as Buffer).length
    expect(size).to.equal(TOTAL)
  })

  it('ends as broken off, for the caller too, where the upstream breaks off or stops sending', async () => {
    for (const stop of [(response: { destroy(): void }) => response.destroy(), () => {}]) {
      source.answer = (response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('a part')
        setTimeout(() => stop(response), 20)
      }
      const answer = await buy(url, place.wallet)
      const failure = await answer.text().catch((error: unknown) => error)
      expect(failure).to.be.instanceOf(Error)
    }
  })

  it('is given up where the caller leaves', async () => {
    let closed = false
    source.answer = (response) => {
      response.write('a part')
      response.on('close', () => (closed = true))
    }
    const answer = await head(await payment(url, place.wallet))
    await once(answer, 'data')
    answer.destroy()
    await until(() => closed)
  })

  it('uses its connections again', async () => {
    await (await buy(url, place.wallet)).text()
    const before = source.connections.size
    for (let count = 0; count < 5; count++) await (await buy(url, place.wallet)).text()
    expect(source.connections.size).to.equal(before)
  })

  it('may be free, and then needs no payment', async () => {
    const answer = await fetch(`${place.url}/v1/free/big`)
    expect([answer.status, await answer.text()]).to.deep.equal([200, 'bytes'])
    const head = await fetch(`${place.url}/v1/free/big`, { method: 'HEAD' })
    expect([head.status, await head.text()]).to.deep.equal([200, ''])
  })

  it('goes on over a new edition', async () => {
    let finish = (): void => {}
    source.answer = (response) => {
      response.write('first ')
      finish = () => response.end('last')
    }
    const answer = await head(await payment(url, place.wallet))
    await once(answer, 'data')
    place.catalog('files.json', { ...FILES(source.url), title: 'Other files' })
    await place.gateway.reload()
    finish()
    const [last] = (await once(answer, 'data')) as [Buffer]
    expect(last.toString()).to.equal('last')
  })
})
