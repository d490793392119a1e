import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { expect } from 'chai'
import request from 'supertest'
import type { CallRequest } from '../../gateway/calls/request-and-answer.ts'
import { openTransportGateway, PRICED, type TransportGateway, route } from './transport-gateway.ts'
import { rawRequest } from './raw.ts'
import { until } from '../support/until.ts'

const JSON_BODY = { body: {}, bodyMedia: ['application/json'] }

const part = (head: string, body: string): string => `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${body}\r\n`

describe('a request body over HTTP', () => {
  let gateway: TransportGateway
  before(async () => {
    gateway = await openTransportGateway([
      route('echo', 'POST /echo', JSON_BODY, ({ raw }) => ({ got: raw.body })),
      route('sell', 'POST /sell', { ...PRICED, ...JSON_BODY, maxBytes: 1_000_000 }),
      route(
        'form',
        'POST /form',
        { body: {}, bodyMedia: ['application/x-www-form-urlencoded'] },
        ({ raw }) => raw.body,
      ),
      route(
        'upload',
        'POST /upload',
        { body: {}, bodyMedia: ['multipart/form-data', 'text/csv'], maxBytes: 100_000 },
        ({ raw }) => raw.body,
      ),
      route('buy', 'POST /buy', {}, ({ raw }) => ({ body: raw.body ?? null })),
    ])
  })
  after(() => gateway.close())
  beforeEach(() => {
    gateway.calls.length = 0
  })

  it('is not read on a priced route without a payment', async () => {
    await request(gateway.server).post('/sell').set('Content-Type', 'image/png').send('not json').expect(402)
    await request(gateway.server).post('/sell').send({}).expect(402)
    expect(gateway.calls).to.have.length(0)
  })

  it('is not requested from a caller who waits for 100 Continue and has not paid', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    await once(socket, 'connect')
    const lines = ['POST /sell HTTP/1.1', 'Host: a', 'Content-Type: application/json', 'Content-Length: 9']
    socket.write([...lines, 'Expect: 100-continue', '', ''].join('\r\n'))
    const [first] = (await once(socket, 'data')) as [Buffer]
    expect(first.toString('latin1')).to.match(/^HTTP\/1\.1 402 /)
    socket.destroy()
  })

  it('is requested with 100 Continue when it is needed', async () => {
    const lines = ['POST /echo HTTP/1.1', 'Host: a', 'Content-Type: application/json', 'Content-Length: 7']
    const text = [...lines, 'Connection: close', 'Expect: 100-continue', '', '{"a":1}'].join('\r\n')
    const { head, body } = await rawRequest(gateway.port, text)
    expect(`${head}\r\n\r\n${body}`).to.match(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK[^]*\{"got":\{"a":1\}\}$/,
    )
  })

  it('is refused above the size limit of the route, and the connection stays open', async () => {
    const big = JSON.stringify('x'.repeat(5000))
    const announced = await request(gateway.server).post('/echo').type('json').send(big).expect(413)
    expect(announced.body).to.include({ code: 'body_too_large', max_bytes: 1000 })
    expect((announced.body as { message: string }).message).to.contain('1000 bytes')
    const status = await new Promise((resolve, reject) => {
      const sent = httpRequest(`${gateway.url}/echo`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      })
      sent.on('response', (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      sent.on('error', reject)
      for (let piece = 0; piece < 500; piece++) sent.write(' '.repeat(1000))
      sent.end('1')
    })
    expect(status).to.equal(413)
    expect(gateway.calls).to.have.length(0)
  })

  it('is refused in a media type, charset or encoding that the route does not accept', async () => {
    const media = await request(gateway.server).post('/echo').type('text/plain').send('x').expect(415)
    expect(media.body).to.deep.include({ code: 'media_unsupported', accepted: ['application/json'] })
    await request(gateway.server).post('/echo').type('form').send('a=1').expect(415)
    await request(gateway.server)
      .post('/echo')
      .set('Content-Type', 'application/json; charset=utf-16')
      .send('1')
      .expect(415)
    await request(gateway.server).post('/echo').type('json').set('Content-Encoding', 'gzip').send('{}').expect(415)
    await request(gateway.server).post('/echo').type('json').set('Content-Encoding', 'Identity').send('{}').expect(200)
  })

  it('is read as JSON without a media type or with a +json media type', async () => {
    const { body } = await request(gateway.server)
      .post('/echo')
      .set('Content-Type', 'application/vnd.a+json')
      .send('[1]')
    expect(body).to.deep.equal({ got: [1] })
    const text = 'POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntrue'
    expect((await rawRequest(gateway.port, text)).body).to.equal('{"got":true}')
  })

  it('reports the position of a JSON syntax error', async () => {
    const { body } = await request(gateway.server).post('/echo').type('json').send('{"a": 1,}').expect(422)
    const { detail } = body as { detail: { loc: unknown; type: string; msg: string }[] }
    expect(detail[0]).to.deep.include({ loc: ['body', 8], type: 'json_invalid' })
    expect(detail[0]?.msg).to.contain('position 8')
  })

  it('is undefined when none was sent or the route accepts none', async () => {
    expect((await request(gateway.server).post('/echo')).body).to.deep.equal({})
    const { body } = await request(gateway.server).post('/buy').send({ price: 0 }).expect(200)
    expect(body).to.deep.equal({ body: null })
  })

  it('is read from a form as strings, and as lists where a name repeats', async () => {
    const { body } = await request(gateway.server).post('/form').type('form').send('email=a%40b.c&source=&tag=x&tag=y')
    expect(body).to.deep.equal({ email: 'a@b.c', source: '', tag: ['x', 'y'] })
  })

  it('is read from multipart or from a raw file as an upload', async () => {
    const csv = Buffer.from('time,price\n1,2\n')
    const multipart = await request(gateway.server)
      .post('/upload')
      .field('preset', 'large_cap')
      .field('preset', 'b')
      .attach('file', csv, { filename: '../../trades.csv', contentType: 'text/csv' })
      .expect(200)
    const expected = { mediaType: 'text/csv', bytes: JSON.parse(JSON.stringify(csv)) as unknown }
    expect(multipart.body).to.deep.equal({ preset: ['large_cap', 'b'], file: { filename: 'trades.csv', ...expected } })
    const csvUpload = await request(gateway.server).post('/upload').type('text/csv').send(csv.toString()).expect(200)
    expect(csvUpload.body).to.deep.equal({ file: { filename: 'upload', ...expected } })
  })

  it('ignores the empty file of a form in which no file was chosen', async () => {
    const text = `${part('name="preset"', 'x')}${part('name="file"; filename=""\r\nContent-Type: application/octet-stream', '')}--b--\r\n`
    const { body } = await request(gateway.server).post('/upload').type('multipart/form-data; boundary=b').send(text)
    expect(body).to.deep.equal({ preset: 'x' })
  })

  it('is refused if multipart is malformed or too large', async () => {
    const upload = (type: string, text: string) => request(gateway.server).post('/upload').type(type).send(text)
    await upload('multipart/form-data', 'x').expect(422)
    await upload(
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\ncut',
    ).expect(422)
    await upload('multipart/form-data; boundary=b', 'no boundary in here').expect(422)
    const field = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    await upload('multipart/form-data; boundary=b', `${field.repeat(101)}--b--\r\n`).expect(422)
    await upload('multipart/form-data; boundary=b', `${field.repeat(3000)}--b--\r\n`).expect(413)
    expect(gateway.calls).to.have.length(0)
  })

  it('aborts the call when the caller disconnects during the upload', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    await once(socket, 'connect')
    const before = gateway.requests.length
    socket.write('POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"a"')
    await until(() => gateway.requests.length > before)
    const { signal } = (gateway.requests.at(-1) as CallRequest).caller
    socket.destroy()
    if (!signal.aborted) await once(signal, 'abort')
    expect(gateway.calls).to.have.length(0)
  })
})

describe('a request body that stops arriving', () => {
  let gateway: TransportGateway
  before(async () => {
    const echo = route('echo', 'POST /echo', { ...JSON_BODY, maxBytes: 5_000_000, tool: 'echo' }, ({ raw }) => ({
      got: raw.body,
    }))
    const take = route('take', 'POST /take', { bodyMedia: ['text/csv'], maxBytes: 40_000_000 })
    gateway = await openTransportGateway([echo, take], { bodies: { graceMs: 200, arrivingBytes: 100_000 } })
  })
  after(() => gateway.close())

  for (const path of ['/echo', '/mcp'])
    it(`is answered 408 on ${path}, the connection is closed, and nothing of it is kept`, async () => {
      const lines = [
        `POST ${path} HTTP/1.1`,
        'Host: localhost',
        'Content-Type: application/json',
        'Content-Length: 4000000',
      ]
      const accept = 'Accept: application/json, text/event-stream'
      // `rawRequest` returns when the server closes the connection.
      const { status, body } = await rawRequest(
        gateway.port,
        [...lines, accept, '', `"${'x'.repeat(900_000)}`].join('\r\n'),
      )
      expect(status).to.equal(408)
      expect(JSON.parse(body)).to.include({ code: 'body_too_slow', retry: 'after_delay' })
      await until(() => gateway.bodies.used.disk === 0)
      expect(gateway.bodies.used).to.deep.equal({ arriving: 0, held: 0, disk: 0 })
    })

  it('is answered 408 if it would take longer than a quarter of an hour, and one of the same rate that will not goes on', async () => {
    const begin = (size: number) => {
      const headers = { 'content-type': 'text/csv', 'content-length': size }
      const upload = httpRequest({ port: gateway.port, method: 'POST', path: '/take', headers })
      const answered = once(upload, 'response') as Promise<[IncomingMessage]>
      return { upload, status: answered.then(([answer]) => answer.resume().statusCode) }
    }
    const [steady, slow] = [begin(1_000_000), begin(39_000_000)]
    let sent = 0
    const timer = setInterval(() => {
      sent += 600
      for (const { upload } of [steady, slow]) upload.write('x'.repeat(600))
    }, 20)
    expect(await slow.status).to.equal(408)
    clearInterval(timer)
    slow.upload.on('error', () => {}).destroy()
    steady.upload.end('x'.repeat(1_000_000 - sent))
    expect(await steady.status).to.equal(200)
  })

  it('does not delay others, who are answered while thirty uploads are stalled', async () => {
    const sockets = Array.from({ length: 30 }, () => connect(gateway.port, '127.0.0.1'))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    const head = 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n'
    const answered = sockets.map((socket) => once(socket, 'data'))
    for (const socket of sockets) socket.on('error', () => {}).write(`${head}"${'x'.repeat(300_000)}`)
    await until(() => gateway.bodies.used.disk > 300_000)
    expect(gateway.bodies.used.arriving).to.be.at.most(100_000)
    expect((await request(gateway.server).post('/echo').send({ a: 1 })).status).to.equal(200)
    for (const [first] of await Promise.all(answered)) expect(String(first)).to.match(/^HTTP\/1\.1 408 /)
    for (const socket of sockets) socket.destroy()
    await until(() => gateway.bodies.used.disk === 0)
  })
})

describe('the bodies of one address', () => {
  let gateway: TransportGateway
  before(async () => {
    const take = route('take', 'POST /take', { bodyMedia: ['text/csv'], maxBytes: 1_000_000 })
    const bodies = { arrivingBytes: 0, diskBytes: 2_000_000, diskBytesOfAddress: 500_000 }
    gateway = await openTransportGateway([take], { bodies, trustedProxies: ['127.0.0.1'] })
  })
  after(() => gateway.close())

  it('have a part of the disk, beyond which they get 503, and leave the rest to those of others', async () => {
    const headers = { 'content-type': 'text/csv', 'content-length': 900_000, 'x-forwarded-for': '2001:db8::1' }
    const stalled = httpRequest({ port: gateway.port, method: 'POST', path: '/take', headers }).on('error', () => {})
    stalled.write('x'.repeat(400_000))
    await until(() => gateway.bodies.used.disk >= 300_000)
    const post = (address: string) =>
      request(gateway.server)
        .post('/take')
        .set({ 'x-forwarded-for': address, 'content-type': 'text/csv' })
        .send('x'.repeat(500_000))
    const same = await post('2001:db8::2')
    expect([same.status, same.headers['retry-after'], (same.body as { message: string }).message]).to.deep.equal([
      503,
      '10',
      'Too many large bodies arrive from your address at the moment; nothing was charged.',
    ])
    expect((await post('2001:db9::1')).status).to.equal(200)
    stalled.destroy()
    await until(() => gateway.bodies.used.disk === 0)
    expect((await post('2001:db8::2')).status).to.equal(200)
  })
})

describe('a request body for which there is no room', () => {
  let gateway: TransportGateway
  before(async () => {
    const [free, priced] = [
      { ...JSON_BODY, maxBytes: 1_000_000 },
      { ...PRICED, ...JSON_BODY, maxBytes: 1_000_000 },
    ]
    const routes = [route('echo', 'POST /echo', free), route('sell', 'POST /sell', priced)]
    gateway = await openTransportGateway(routes, { bodies: { arrivingBytes: 0, diskBytes: 100_000 } })
  })
  after(() => gateway.close())

  it('is answered 503 with the time to wait, and those of priced routes have room of their own', async () => {
    const body = JSON.stringify('x'.repeat(900_000))
    const refused = await request(gateway.server).post('/echo').type('json').send(body)
    expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '10'])
    expect((await request(gateway.server).post('/echo').type('json').send('1')).status).to.equal(200)
    const paid = await request(gateway.server).post('/sell').set('X-PAYMENT', 'e30=').type('json').send(body)
    expect(paid.status).to.equal(200)
  })
})
