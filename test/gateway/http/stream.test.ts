import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect } from 'chai'
import type { ServerEvent } from '../../../gateway/plugin/plugin.ts'
import { eventText, sendEvents, type StreamOptions } from '../../../gateway/http/event-stream.ts'

interface Watched {
  readonly source: AsyncIterable<ServerEvent>
  /** Events that were asked for. */
  asked: number
  /** Times the source was told to stop. */
  left: number
}

/** Events of so many characters, without end; or, where `count` is given, so many and then silence. */
function events(size: number, count = Infinity): Watched {
  const watched = {
    asked: 0,
    left: 0,
    source: {
      [Symbol.asyncIterator]: () => ({
        async next() {
          watched.asked += 1
          if (watched.asked > count) return new Promise<never>(() => {})
          return { done: false as const, value: { id: String(watched.asked), data: 'x'.repeat(size) } }
        },
        async return() {
          watched.left += 1
          return { done: true as const, value: undefined }
        },
      }),
    },
  }
  return watched
}

describe('a stream of events', () => {
  let server: Server
  let sent: Promise<void>
  let offered: AsyncIterable<ServerEvent>
  let options: Partial<StreamOptions>
  before(async () => {
    server = createServer((_, response) => {
      const gone = new AbortController()
      response.once('close', () => gone.abort())
      sent = sendEvents(response, offered, { signal: gone.signal, isCurrent: () => true, ...options })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  after(() => new Promise((resolve) => server.close(resolve)))
  const address = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

  /** A reader that asks, and then takes nothing. */
  async function openReader(): Promise<Socket> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const arrived = new Promise((resolve) => server.once('request', resolve))
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await arrived
    return socket
  }

  it('is text an EventSource reads, one line of data an event', () => {
    expect(eventText({ id: '7', data: { a: 'b\nc' } })).to.equal('id: 7\ndata: {"a":"b\\nc"}\n\n')
    expect(eventText({ id: '7\nevent: x\r\0', data: undefined })).to.equal('id: 7event: x\ndata: null\n\n')
  })

  it('asks for no event before the last one has gone, and cuts off a reader that takes nothing', async () => {
    const watched = events(100_000)
    offered = watched.source
    options = { stallMs: 300 }
    const socket = await openReader()
    socket.pause()
    await sent
    // What the kernel took, and one event more; without bound it would be all there is.
    expect(watched.asked).to.be.below(200)
    expect(watched.left).to.equal(1)
    socket.destroy()
  })

  it('waits for a reader that takes its time', async () => {
    const watched = events(200_000, 60)
    offered = watched.source
    options = { stallMs: 20_000 }
    const socket = await openReader()
    let bytes = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      socket.pause()
      setTimeout(() => socket.resume(), 1)
    })
    while (bytes < 60 * 200_000) await new Promise((wake) => setTimeout(wake, 20))
    socket.destroy()
    await sent
    expect(watched.left).to.equal(1)
  })

  it('sends a sign of life while nothing happens, and ends when it is not current any more', async () => {
    const watched = events(1, 1)
    offered = watched.source
    let beats = 0
    options = { heartbeatMs: 5, isCurrent: () => (beats += 1) < 10 }
    const text = await (await fetch(address())).text()
    await sent
    expect(text).to.match(/^id: 1\ndata: "x"\n\n(: still here\n\n){3,}$/)
    expect(watched.left).to.equal(1)
  })

  it('tells its source when the reader leaves while nothing happens', async () => {
    const watched = events(1, 0)
    offered = watched.source
    options = {}
    const socket = await openReader()
    socket.destroy()
    await sent
    expect([watched.asked, watched.left]).to.deep.equal([1, 1])
  })
})
