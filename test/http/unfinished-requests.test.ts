import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import fc from 'fast-check'
import { until } from '../support/until.ts'
import { openTransportGateway, PRICED, route, type TransportGateway } from './transport-gateway.ts'

const HEAD = 'POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`
const MAX_BYTES = 8_000_000
const TINY_CHUNK = '1\r\na\r\n'

/** A connection, and what was received on it. */
interface Caller {
  readonly socket: Socket
  received: string
  isEnded: boolean
  isClosed: boolean
}

describe('a request that is answered before it has arrived', () => {
  let gateway: TransportGateway
  const callers: Socket[] = []

  async function call(): Promise<Caller> {
    const socket = connect(gateway.port, '127.0.0.1')
    const caller: Caller = { socket, received: '', isEnded: false, isClosed: false }
    callers.push(socket)
    socket.setEncoding('latin1').on('data', (text: string) => (caller.received += text))
    socket.on('end', () => (caller.isEnded = true)).on('close', () => (caller.isClosed = true))
    socket.on('error', () => {})
    await once(socket, 'connect')
    return caller
  }

  const statuses = ({ received }: Caller): string[] =>
    [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status ?? '')

  async function answers(caller: Caller, count: number): Promise<string[]> {
    await until(() => statuses(caller).length >= count)
    return statuses(caller)
  }

  async function open(restTimes: { shortRestMs?: number; drainMs?: number } = {}): Promise<void> {
    gateway = await openTransportGateway(
      [
        route('upload', 'POST /upload', { ...PRICED, bodyMedia: ['application/json'], maxBytes: MAX_BYTES }),
        route('getQuick', 'GET /quick'),
      ],
      { restTimes },
    )
  }

  afterEach(async () => {
    for (const socket of callers.splice(0)) socket.destroy()
    await gateway.close()
  })

  for (const [name, head, body] of [
    ['with a length', `${HEAD}Content-Length: 60000\r\n\r\n`, 'x'.repeat(60_000)],
    ['in chunks', CHUNKED, `${TINY_CHUNK.repeat(5_000)}0\r\n\r\n`],
  ] as const)
    it(`keeps its connection if a short rest follows ${name}`, async () => {
      await open({ shortRestMs: 60_000 })
      const caller = await call()
      caller.socket.write(head)
      expect(await answers(caller, 1)).to.deep.equal(['402'])
      expect(caller.received).to.include('Connection: keep-alive')
      caller.socket.write(`${body}GET /quick HTTP/1.1\r\nHost: a\r\n\r\n${head}${body}`)
      expect(await answers(caller, 3)).to.deep.equal(['402', '200', '402'])
    })

  it('loses its connection if a short rest does not follow', async () => {
    await open({ shortRestMs: 50, drainMs: 50 })
    const caller = await call()
    caller.socket.write(`${HEAD}Content-Length: 60000\r\n\r\n`)
    await until(() => caller.isClosed)
    expect(statuses(caller)).to.deep.equal(['402'])
  })

  it('is told that its connection ends if a long rest follows, and reads that after it has written', async () => {
    await open()
    const caller = await call()
    caller.socket.pause()
    caller.socket.write(`${HEAD}Content-Length: ${MAX_BYTES}\r\n\r\n`)
    for (let sent = 0; sent < MAX_BYTES; sent += 100_000)
      if (!caller.socket.write('x'.repeat(100_000))) await once(caller.socket, 'drain')
    caller.socket.resume()
    await until(() => caller.isEnded)
    expect(statuses(caller)).to.deep.equal(['402'])
    expect(caller.received).to.include('Connection: close')
  })

  it('is dropped for as long as it arrives at a rate of people', async () => {
    await open({ drainMs: 300 })
    const caller = await call()
    caller.socket.write(`${HEAD}Content-Length: ${MAX_BYTES}\r\n\r\n`)
    await answers(caller, 1)
    const began = performance.now()
    while (performance.now() - began < 1_500) {
      caller.socket.write('x'.repeat(5_000))
      await new Promise((wake) => setTimeout(wake, 50))
    }
    expect(caller.isClosed).to.equal(false)
    await until(() => caller.isClosed)
  })

  it('is not parsed chunk by chunk, and is cut off at the size of the largest body', async () => {
    await open()
    const caller = await call()
    let sent = 0
    caller.socket.write(CHUNKED)
    const flood = TINY_CHUNK.repeat(50_000)
    while (!caller.isClosed && sent < 10 * MAX_BYTES) {
      if (!caller.socket.write(flood)) await until(() => caller.isClosed || !caller.socket.writableNeedDrain)
      sent += flood.length
    }
    await until(() => caller.isClosed)
    expect(sent).to.be.below(4 * MAX_BYTES)
  })

  describe('and is followed by one with a body', () => {
    const echo = JSON.stringify({ text: 'whole' })
    const next = `POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${echo.length}\r\n\r\n`

    async function openEcho(restTimes: { shortRestMs?: number } = {}): Promise<Caller> {
      gateway = await openTransportGateway(
        [
          route('upload', 'POST /upload', { ...PRICED, bodyMedia: ['application/json'] }),
          route('echo', 'POST /echo', { bodyMedia: ['application/json'] }, ({ raw }) => raw.body),
        ],
        { restTimes },
      )
      return call()
    }

    it('leaves it whole', async () => {
      const caller = await openEcho()
      caller.socket.write(`${CHUNKED}${TINY_CHUNK.repeat(10)}0\r\n\r\n${next}${echo}`)
      expect(await answers(caller, 2)).to.deep.equal(['402', '200'])
      await until(() => caller.received.endsWith(echo))
    })

    it('leaves it the time that it takes', async () => {
      const shortRestMs = 300
      const caller = await openEcho({ shortRestMs })
      caller.socket.write(CHUNKED)
      await answers(caller, 1)
      caller.socket.write(`${TINY_CHUNK}0\r\n\r\n${next}`)
      const sentAt = performance.now()
      // The time in which the rest had to arrive is over more than once.
      for (let at = 0; at < echo.length; at += 1) {
        await until(() => performance.now() - sentAt > (at + 1) * (shortRestMs / 5))
        caller.socket.write(echo.slice(at, at + 1))
      }
      expect(await answers(caller, 2)).to.deep.equal(['402', '200'])
      await until(() => caller.received.endsWith(echo))
    })
  })
})

describe('an answer that its caller does not read', () => {
  const text = 'x'.repeat(30_000_000)
  let gateway: TransportGateway
  let socket: Socket

  async function open(unreadMs: number): Promise<void> {
    const much = route('getMuch', 'GET /much', {}, () => ({ text }))
    gateway = await openTransportGateway([much], { restTimes: { unreadMs } })
    socket = connect(gateway.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /much HTTP/1.1\r\nHost: a\r\n\r\n')
  }
  afterEach(async () => {
    socket.destroy()
    await gateway.close()
  })

  it('costs it the connection', async () => {
    await open(200)
    const [accepted] = (await once(gateway.server, 'connection')) as [Socket]
    await until(() => accepted.destroyed)
    expect(accepted.bytesWritten, 'what was written before').to.be.greaterThan(0)
    expect(gateway.requests).to.have.length(1)
  })

  it('arrives whole if its caller only reads slowly', async () => {
    const unreadMs = 1_000
    await open(unreadMs)
    let length = 0
    socket.on('data', (piece: Buffer) => {
      const tenth = Math.floor((10 * length) / text.length)
      length += piece.length
      if (Math.floor((10 * length) / text.length) === tenth) return
      socket.pause()
      setTimeout(() => socket.resume(), unreadMs / 4)
    })
    await until(() => length > text.length || socket.closed)
    expect(length).to.be.greaterThan(text.length)
  })
})

describe('a Node whose parser lacks the parts that stop it', () => {
  it('answers pipelined requests, and gets the body of one behind a request that is answered early', async () => {
    const gateway = await openTransportGateway([
      route('upload', 'POST /upload', { ...PRICED, bodyMedia: ['application/json'] }),
      route('echo', 'POST /echo', { bodyMedia: ['application/json'] }, ({ raw }) => raw.body),
    ])
    try {
      const [accept, hook] = gateway.server.listeners('connection') as ((socket: Socket) => void)[]
      gateway.server.removeAllListeners('connection').on('connection', (socket: Socket & { parser: object }) => {
        accept?.call(gateway.server, socket)
        const { parser } = socket
        socket.parser = {}
        hook?.call(gateway.server, socket)
        socket.parser = parser
      })
      const socket = connect(gateway.port, '127.0.0.1')
      let received = ''
      socket.setEncoding('latin1').on('data', (text: string) => (received += text))
      socket.write(CHUNKED)
      await until(() => received.includes('402'))
      const body = '"whole"'
      const next = `POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
      socket.write(`${TINY_CHUNK}0\r\n\r\n${`${next}${body}`.repeat(6)}`)
      await until(() => received.split(body).length === 7)
      socket.destroy()
    } finally {
      await gateway.close()
    }
  })
})

describe('a body in tiny chunks', () => {
  const limit = { requests: 10, seconds: 600 }

  it('arrives whole, whatever the sizes of its chunks and of its packets', async () => {
    const gateway = await openTransportGateway([
      route('echo', 'POST /echo', { bodyMedia: ['application/json'], maxBytes: 1_000_000 }, ({ raw }) => raw.body),
    ])
    try {
      const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 1_000 })), {
        minLength: 100,
        maxLength: 2_000,
      })
      await fc.assert(
        fc.asyncProperty(sizes, fc.integer({ min: 50, max: 70_000 }), async (chunkSizes, packet) => {
          const pieces = chunkSizes.map((size, at) => String.fromCharCode(97 + (at % 26)).repeat(size))
          const text = pieces.join('')
          const body = ['"', ...pieces, '"'].map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
          const socket = connect(gateway.port, '127.0.0.1')
          let received = ''
          socket.setEncoding('latin1').on('data', (piece: string) => (received += piece))
          const sent = `${CHUNKED.replace('/upload', '/echo')}${body}0\r\n\r\n`
          for (let at = 0; at < sent.length; at += packet)
            if (!socket.write(sent.slice(at, at + packet))) await once(socket, 'drain')
          await until(() => received.endsWith(`"${text}"`), 1)
          socket.destroy()
        }),
        { numRuns: 40 },
      )
      expect(gateway.bodies.used).to.deep.equal({ arriving: 0, held: 0, disk: 0 })
    } finally {
      await gateway.close()
    }
  })
  const from = 'X-Forwarded-For: 203.0.113.9\r\n'

  for (const [name, path] of [
    ['that is read', '/read'],
    ['that waits for a payment to be checked', '/upload'],
  ] as const)
    it(`counts like requests of its caller, if it is one ${name}`, async () => {
      const gateway = await openTransportGateway(
        [
          route('read', 'POST /read', { bodyMedia: ['application/json'], maxBytes: 1_000_000 }),
          route('upload', 'POST /upload', { ...PRICED, bodyMedia: ['application/json'], maxBytes: 1_000_000 }),
        ],
        { limit },
      )
      try {
        const head = `POST ${path} HTTP/1.1\r\nHost: a\r\n${from}X-PAYMENT: e30=\r\nContent-Type: application/json\r\n`
        const socket = connect(gateway.port, '127.0.0.1')
        let received = ''
        socket.setEncoding('latin1').on('data', (text: string) => (received += text))
        socket.on('error', () => {})
        socket.write(
          `${head}Transfer-Encoding: chunked\r\n\r\n"${TINY_CHUNK.repeat(20_000)}`.replace('"', '1\r\n"\r\n'),
        )
        await until(() => received.includes('\r\n\r\n'))
        expect(received).to.match(/^HTTP\/1\.1 429/)
        expect(received)
          .to.include('rate_limited')
          .and.match(/\r\nconnection: close\r\n/i)
        socket.destroy()
      } finally {
        await gateway.close()
      }
    })
})
