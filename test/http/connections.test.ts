import { EventEmitter, once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import request from 'supertest'
import { Reply, type ServerEvent } from '../../gateway/plugin/plugin.ts'
import { openTransportGateway, type TransportGateway, route } from './transport-gateway.ts'
import { until, untilStill } from '../support/until.ts'

/** Sends a request and resolves with the response once its headers have arrived. */
function open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { headers }, resolve).on('error', reject).end()
  })
}

describe('an open connection', () => {
  let gateway: TransportGateway
  const source = { stopped: 0, written: 0 }
  const gate = new EventEmitter()

  async function* count(last: number, payload: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    for (let id = 1; id <= last; id++) {
      source.written = id
      yield { id: String(id), data: { id, payload } }
    }
    if (last < 100) await once(signal, 'abort').then(() => source.stopped++)
  }

  beforeEach(async () => {
    source.stopped = 0
    source.written = 0
    gateway = await openTransportGateway(
      [
        route('getQuick', 'GET /quick'),
        route('getHeld', 'GET /held', {}, async () => {
          await once(gate, 'open')
          return { done: true }
        }),
        route('watch', 'GET /watch', {}, ({ request }) => Reply.events(count(2, 'x', request.caller.signal))),
        route('watchAll', 'GET /watch/all', {}, ({ request }) => Reply.events(count(100, 'x', request.caller.signal))),
        route('watchMuch', 'GET /watch/much', {}, ({ request }) =>
          Reply.events(count(1_000_000, 'x'.repeat(10_000), request.caller.signal)),
        ),
      ],
      { maxStreams: 2 },
    )
  })
  afterEach(() => gateway.close())

  it('receives events with their ids until the source ends', async () => {
    const { text: sent, headers } = await request(gateway.server).get('/watch/all').expect(200)
    expect(headers['content-type']).to.equal('text/event-stream; charset=utf-8')
    expect(headers['cache-control']).to.equal('no-store')
    const events = sent.split('\n\n').filter(Boolean)
    expect(events).to.have.length(100)
    expect(events[99]).to.equal('id: 100\ndata: {"id":100,"payload":"x"}')
  })

  it('ends without a second answer if its caller sends what is not HTTP after an answer has begun', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', (text: string) => (received += text))
    socket.write('GET /watch HTTP/1.1\r\nHost: a\r\n\r\n')
    await until(() => received.includes('id: 2'))
    socket.write('nonsense\r\n\r\n')
    await once(socket, 'close')
    expect(received.match(/HTTP\/1\.1/g)).to.have.length(1)
    await until(() => source.stopped > 0)
  })

  it('ends without an answer if its caller sends what is not HTTP behind a call that runs', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', (text: string) => (received += text))
    socket.write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n')
    await until(() => gateway.requests.length >= 1)
    socket.write('nonsense\r\n\r\n')
    await once(socket, 'close')
    expect(received).to.equal('')
  })

  it('gets 408 and may send its request again if the request arrives too slowly', async () => {
    const connected = once(gateway.server, 'connection')
    const socket = connect(gateway.port, '127.0.0.1')
    const slow = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    gateway.server.emit('clientError', slow, (await connected)[0])
    const [answer] = (await once(socket.setEncoding('utf8'), 'data')) as [string]
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    expect(head).to.match(/^HTTP\/1\.1 408 Request Timeout\r\n/)
    expect(JSON.parse(body)).to.deep.include({ code: 'body_too_slow', retry: 'after_delay' })
    socket.destroy()
  })

  it('stops the event source when the caller disconnects', async () => {
    const answer = await open(`${gateway.url}/watch`)
    await once(answer, 'data')
    expect(source.stopped).to.equal(0)
    answer.destroy()
    await until(() => source.stopped > 0)
    expect(source.stopped).to.equal(1)
  })

  it('is refused above the maximum of open streams, and accepted again when one has ended', async () => {
    const [first, second] = [await open(`${gateway.url}/watch`), await open(`${gateway.url}/watch`)]
    const full = await request(gateway.server).get('/watch').expect(429)
    expect(full.headers['retry-after']).to.equal('60')
    expect(full.body).to.include({ code: 'rate_limited' })
    await request(gateway.server).get('/quick').expect(200)
    first.destroy()
    await until(() => source.stopped > 0)
    const third = await open(`${gateway.url}/watch`)
    expect(third.statusCode).to.equal(200)
    for (const stream of [second, third]) stream.destroy()
  })

  it('waits for a caller who reads slowly', async () => {
    const answer = await open(`${gateway.url}/watch/much`)
    answer.pause()
    const written = await untilStill(
      () => source.written,
      () => request(gateway.server).get('/quick').expect(200),
    )
    expect(written).to.be.greaterThan(0).and.lessThan(10_000)
    answer.destroy()
  })

  it('aborts the call when the caller disconnects, and only then', async () => {
    await request(gateway.server).get('/quick').expect(200)
    expect(gateway.requests[0]?.caller.signal.aborted).to.equal(false)
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n')
    await until(() => gateway.requests.length >= 2)
    const signal = gateway.requests[1]?.caller.signal as AbortSignal
    expect(signal.aborted).to.equal(false)
    socket.destroy()
    await once(signal, 'abort')
  })

  it('lets a running call finish when the server closes, and ends streams', async () => {
    const stream = await open(`${gateway.url}/watch`)
    stream.resume()
    const ended = once(stream, 'end')
    const running = open(`${gateway.url}/held`)
    await until(() => gateway.requests.length >= 2)
    const closed = new Promise((resolve) => gateway.server.close(resolve))
    await ended
    await until(() => source.stopped > 0)
    gate.emit('open')
    const answer = await running
    expect(answer.statusCode).to.equal(200)
    expect(answer.headers.connection).to.equal('close')
    answer.resume()
    await closed
  })

  it('ends a stream when a new edition replaces the one that serves it', async () => {
    const stream = await open(`${gateway.url}/watch/much`)
    await once(stream, 'data')
    gateway.swap([route('getQuick', 'GET /quick')])
    stream.resume()
    await once(stream, 'end')
    await request(gateway.server).get('/watch').expect(404)
    await request(gateway.server).get('/quick').expect(200)
  })
})

describe('a request through a named proxy', () => {
  let gateway: TransportGateway
  const from = (address: string) => request(gateway.server).get('/quick').set('X-Forwarded-For', address)
  beforeEach(async () => {
    const limit = { requests: 3, seconds: 60 }
    gateway = await openTransportGateway([route('getQuick', 'GET /quick')], { limit, trustedProxies: ['127.0.0.1'] })
  })
  afterEach(() => gateway.close())

  it('is refused above the rate limit of its address, with Retry-After', async () => {
    for (const address of ['192.0.2.1', '192.0.2.1', '192.0.2.1']) await from(address).expect(200)
    const refused = await from('192.0.2.1').expect(429)
    expect(refused.body).to.include({ code: 'rate_limited', retry: 'after_delay' })
    expect(Number(refused.headers['retry-after'])).to.be.within(1, 60)
    expect(refused.headers['access-control-allow-origin']).to.equal('*')
    await from('192.0.2.2').expect(200)
    for (const last of ['1', '2', '3']) await from(`2001:db8:0:1::${last}`).expect(200)
    for (const spelling of ['2001:db8:0:1:ffff::1', '2001:0DB8:0000:1::1', '[2001:db8::1:0:0:0:9]:443'])
      await from(spelling).expect(429)
    await from('::ffff:c000:0201').expect(429)
    await from('2001:db8:0:2::1').expect(200)
  })

  it('counts the requests of a token from all addresses', async () => {
    const holder = (last: number) => from(`192.0.2.${last}`).set('X-SERVICE-TOKEN', 'shared')
    for (const last of [11, 12, 13]) await holder(last).expect(200)
    await holder(14).expect(429)
    await from('192.0.2.14').expect(200)
  })
})

const STREAMS = 20

for (const [kind, path] of [
  ['event', '/watch'],
  ['notification', '/mcp'],
] as const)
  describe(`the open ${kind} streams`, () => {
    let gateway: TransportGateway
    const opened: IncomingMessage[] = []
    async function* wait(signal: AbortSignal): AsyncGenerator<ServerEvent> {
      yield { id: '1', data: 'open' }
      await once(signal, 'abort')
    }

    async function openGateway(trustedProxies: readonly string[]): Promise<void> {
      const watch = route('watch', 'GET /watch', {}, ({ request }) => Reply.events(wait(request.caller.signal)))
      gateway = await openTransportGateway([watch], { maxStreams: STREAMS, trustedProxies })
    }
    beforeEach(() => openGateway(['127.0.0.1']))
    afterEach(async () => {
      for (const stream of opened.splice(0)) stream.destroy()
      await gateway.close()
    })

    async function openFrom(address: string | null, headers: Readonly<Record<string, string>> = {}): Promise<number> {
      const from = address === null ? {} : { 'x-forwarded-for': address }
      const answer = await open(gateway.url + path, { accept: 'text/event-stream', ...from, ...headers })
      opened.push(answer)
      return answer.statusCode ?? 0
    }

    it('are at most a tenth for one address behind a named proxy, whatever token it sends, and free again at their end', async () => {
      for (let at = 0; at < STREAMS / 10; at++) expect(await openFrom('192.0.2.1')).to.equal(200)
      for (const token of ['', 'made-up', 'made-up-too'])
        expect(await openFrom('192.0.2.1', token === '' ? {} : { 'x-service-token': token })).to.equal(429)
      const refused = opened.at(-1) as IncomingMessage
      expect(refused.headers['retry-after']).to.equal('60')
      const message = `This address has 2 open ${kind} streams, which is the most. Wait 60 s.`
      expect(JSON.parse(await text(refused))).to.include({ code: 'rate_limited', message })
      for (const address of ['192.0.2.2', '2001:db8:0:1::1', '2001:0DB8:0:1::2'])
        expect(await openFrom(address), address).to.equal(200)
      expect(await openFrom('2001:db8::1:0:0:0:3'), 'a third one of a /64').to.equal(429)
      opened[0]?.destroy()
      await until(async () => (await openFrom('192.0.2.1')) === 200)
    })

    it('are at most a tenth for all callers of a proxy that is not named', async () => {
      await gateway.close()
      await openGateway([])
      const statuses = []
      for (let at = 1; at <= 4; at++) statuses.push(await openFrom(`192.0.2.${at}`))
      expect(statuses).to.deep.equal([200, 200, 429, 429])
    })

    it('are as many as there are places for callers on the same machine, and no more in all', async () => {
      await gateway.close()
      await openGateway([])
      for (let at = 0; at < STREAMS; at++) expect(await openFrom(null)).to.equal(200)
      expect(await openFrom(null)).to.equal(429)
      const { message } = JSON.parse(await text(opened.at(-1) as IncomingMessage)) as { message: string }
      expect(message).to.equal(`Too many open ${kind} streams. Wait 60 s.`)
    })
  })
