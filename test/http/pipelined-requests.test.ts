import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import { expect } from 'chai'
import fc from 'fast-check'
import { createLog } from '../../gateway/observe/log.ts'
import { until, untilStill } from '../support/until.ts'
import {
  openTransportGateway,
  route,
  type TransportGateway,
  type TransportGatewayOptions,
} from './transport-gateway.ts'

const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`

interface Sent {
  readonly kind: 'get' | 'length' | 'chunks'
  readonly text: string
}

/** A request whose answer repeats the text. */
function echo({ kind, text }: Sent): string {
  if (kind === 'get') return get(`/echo?text=${text}`)
  const head = 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'
  const body = JSON.stringify(text)
  if (kind === 'length') return `${head}Content-Length: ${body.length}\r\n\r\n${body}`
  const chunks = Array.from(body, (letter) => `1\r\n${letter}\r\n`).join('')
  return `${head}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`
}

describe('requests that are sent without waiting for answers', () => {
  let gateway: TransportGateway
  let socket: Socket
  let received = ''
  let running = 0
  let most = 0
  const gate = new EventEmitter()
  const echoes = (): string[] => [...received.matchAll(/"echo":"(\w*)"/g)].map(([, text]) => text ?? '')

  async function hold(): Promise<unknown> {
    running += 1
    most = Math.max(most, running)
    await once(gate, 'open')
    running -= 1
    return { echo: 'held' }
  }

  async function open(options: TransportGatewayOptions = {}): Promise<void> {
    gateway = await openTransportGateway(
      [
        route('getHeld', 'GET /held', {}, hold),
        route('postHeld', 'POST /held', { bodyMedia: ['application/json'] }, hold),
        route('getEcho', 'GET /echo', {}, async ({ raw }) => {
          running += 1
          most = Math.max(most, running)
          await new Promise(setImmediate)
          running -= 1
          return { echo: (raw.query as { text: string }).text }
        }),
        route('getOther', 'GET /other'),
        route('postEcho', 'POST /echo', { bodyMedia: ['application/json'] }, ({ raw }) => ({ echo: raw.body })),
      ],
      { limit: { requests: 1_000_000, seconds: 10 }, ...options },
    )
  }

  /** A call on a connection of its own. */
  const askOther = (): Promise<Response> => fetch(`${gateway.url}/other`)

  async function call(): Promise<void> {
    received = ''
    socket = connect(gateway.port, '127.0.0.1')
    socket.setEncoding('latin1').on('data', (text: string) => (received += text))
    socket.on('error', () => {})
    await once(socket, 'connect')
  }

  beforeEach(() => {
    running = 0
    most = 0
  })
  afterEach(async () => {
    socket.destroy()
    gate.emit('open')
    await gateway.close()
  })

  it('run a few at a time, and all are answered in order', async () => {
    await open()
    await call()
    const texts = Array.from({ length: 1_000 }, (_, at) => `n${at}`)
    socket.write(texts.map((text) => echo({ kind: 'get', text })).join(''))
    await until(() => echoes().length === texts.length)
    expect(echoes()).to.deep.equal(texts)
    expect(most).to.be.within(1, 4)
    socket.write(echo({ kind: 'length', text: 'later' }))
    await until(() => echoes().at(-1) === 'later')
  })

  it('wait while the first ones run, and what follows is not read', async () => {
    await open()
    await call()
    const calls = get('/held').repeat(400_000)
    socket.write(calls)
    await until(() => running === 4)
    const { length } = calls
    expect(await untilStill(() => socket.bytesWritten - socket.writableLength, askOther)).to.be.below(length)
    expect(gateway.calls.filter(({ operation }) => operation === 'getHeld')).to.have.length(4)
    const opening = setInterval(() => gate.emit('open'), 1)
    await until(() => echoes().length >= 100)
    clearInterval(opening)
    expect(most).to.equal(4)
  })

  it('are answered in order, whatever their bodies and wherever they are cut', async function () {
    this.timeout(120_000)
    await open()
    const sent = fc.record({
      kind: fc.constantFrom('get' as const, 'length' as const, 'chunks' as const),
      text: fc.stringMatching(/^\w{0,12}$/),
    })
    const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(fc.array(sent, { minLength: 1, maxLength: 40 }), cuts, async (requests, sizes) => {
        let left = requests
        // Requests with bodies that were sent behind too many others are not answered: their caller sends them again.
        while (left.length > 0) {
          await call()
          const text = left.map(echo).join('')
          let at = 0
          for (const size of sizes) {
            socket.write(text.slice(at, at + size))
            at += size
            await new Promise(setImmediate)
          }
          socket.write(text.slice(at))
          const expected = left.map((each) => each.text)
          await until(() => socket.closed || echoes().length >= expected.length, 1)
          const answered = echoes()
          expect(answered).to.deep.equal(expected.slice(0, answered.length))
          expect(answered.length).to.be.greaterThan(0)
          if (!socket.closed) expect(answered).to.have.length(expected.length)
          left = left.slice(answered.length)
          socket.destroy()
        }
      }),
      { numRuns: 300 },
    )
    expect(most).to.be.at.most(4)
  })

  for (const head of ['GET /quick HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c', 'CONNECT a:1 HTTP/1.1'])
    it(`do not take the socket from the server if the last one is ${head.slice(0, head.indexOf(' '))}`, async () => {
      await open()
      const connected = once(gateway.server, 'connection')
      await call()
      const held = 'POST /held HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
      socket.write(`${held.repeat(4)}${head}\r\nHost: a\r\n\r\n`)
      const [accepted] = (await connected) as [Socket]
      await until(() => running === 4)
      // Without a listener, an error of the connection would end the process.
      expect(accepted.listenerCount('error')).to.be.greaterThan(0)
      socket.resetAndDestroy()
      await until(() => accepted.destroyed)
    })

  describe('after more than a few were sent', () => {
    let accepted: Socket

    beforeEach(async () => {
      await open()
      const connected = once(gateway.server, 'connection')
      await call()
      socket.write(get('/held').repeat(4))
      ;[accepted] = (await connected) as [Socket]
      await until(() => running === 4)
      gate.emit('open')
      await until(() => echoes().length === 4)
    })

    it('are not read if their handler does not read', async () => {
      const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`
      const body = chunk.repeat(2_000)
      socket.write(get('/held', 'Transfer-Encoding: chunked\r\n') + body)
      await until(() => running === 1)
      expect(await untilStill(() => accepted.bytesRead, askOther)).to.be.below(body.length / 10)
    })

    it('arrive whole, even if the calls before them run', async () => {
      socket.write(get('/held').repeat(3) + echo({ kind: 'length', text: 'whole' }))
      await until(() => gateway.calls.some(({ operation }) => operation === 'postEcho'))
      expect(running).to.equal(3)
      gate.emit('open')
      await until(() => echoes().at(-1) === 'whole')
    })

    it('are refused at once if they are not HTTP', async () => {
      socket.write('nonsense\r\n\r\n')
      await until(() => received.includes('HTTP/1.1 400'))
      await until(() => accepted.writableEnded)
    })

    for (const cut of [1, 2, 3])
      it(`are all answered if the end of a head is cut ${cut} bytes before its end`, async () => {
        const before = accepted.bytesRead
        const text = get('/held').repeat(4)
        socket.write(text.slice(0, -cut))
        await until(() => accepted.bytesRead === before + text.length - cut)
        expect(running).to.equal(3)
        socket.write(text.slice(-cut) + get('/echo?text=last'))
        await until(() => running === 4)
        gate.emit('open')
        await until(() => echoes().at(-1) === 'last')
        expect(echoes()).to.have.length(9)
      })
  })

  it('end with the first that is refused, and refusals are logged a few at a time', async () => {
    const lines: string[] = []
    const output = new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(chunk.toString())
        done()
      },
    })
    await open({ limit: { requests: 10, seconds: 600 }, log: createLog('info', output) })
    const from = 'X-Forwarded-For: 203.0.113.9\r\n'
    for (let connection = 0; connection < 50; connection += 1) {
      await call()
      socket.write(get('/echo?text=a', from).repeat(2_000))
      await once(socket, 'close')
      const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
      expect(statuses.filter((status) => status === '429')).to.have.length(1)
      expect(statuses.at(-1)).to.equal('429')
      expect(received).to.match(/\r\nconnection: close\r\n/i)
    }
    const refused = lines.filter((line) => line.includes('"status":429'))
    expect(refused).to.have.length.within(5, 49)
  })

  it('begin a few at a time in each turn of the event loop', async () => {
    await open()
    let [inTurn, mostInTurn, begun] = [0, 0, 0]
    gateway.server.on('request', () => {
      if (inTurn === 0) setImmediate(() => (inTurn = 0))
      inTurn += 1
      begun += 1
      mostInTurn = Math.max(mostInTurn, inTurn)
    })
    await call()
    socket.write(get('/nothing').repeat(1_000))
    await until(() => begun === 1_000)
    expect(mostInTurn).to.be.within(1, 12)
  })

  it('stay on the connection of a named proxy, which carries the calls of others, when one is refused', async () => {
    await open({ limit: { requests: 10, seconds: 600 }, trustedProxies: ['127.0.0.1'] })
    await call()
    socket.write(get('/echo?text=a', 'X-Forwarded-For: 203.0.113.9\r\n').repeat(12))
    socket.write(get('/echo?text=b', 'X-Forwarded-For: 203.0.113.10\r\n'))
    await until(() => echoes().includes('b'))
    expect(received.match(/HTTP\/1\.1 429/g)).to.have.length(2)
  })
})
