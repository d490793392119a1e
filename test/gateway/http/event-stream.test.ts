import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect } from 'chai'
import type { ServerEvent } from '../../../gateway/plugin/plugin.ts'
import { eventText, sendEvents, type StreamOptions } from '../../../gateway/http/event-stream.ts'

interface WatchedSource {
  readonly source: AsyncIterable<ServerEvent>
  /** How many events were requested from the source. */
  requested: number
  /** How often the source was stopped. */
  stopped: number
}

/** Yields events of this many characters forever, or `count` of them and then none. */
function events(size: number, count = Infinity): WatchedSource {
  const watched = {
    requested: 0,
    stopped: 0,
    source: {
      [Symbol.asyncIterator]: () => ({
        async next() {
          watched.requested += 1
          if (watched.requested > count) return new Promise<never>(() => {})
          return { done: false as const, value: { id: String(watched.requested), data: 'x'.repeat(size) } }
        },
        async return() {
          watched.stopped += 1
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

  /** A reader that sends a request and never reads the response. */
  async function openReader(): Promise<Socket> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const arrived = new Promise((resolve) => server.once('request', resolve))
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await arrived
    return socket
  }

  it('has one line of data per event, as an EventSource expects', () => {
    expect(eventText({ id: '7', data: { a: 'b\nc' } })).to.equal('id: 7\ndata: {"a":"b\\nc"}\n\n')
    expect(eventText({ id: '7\nevent: x\r\0', data: undefined })).to.equal('id: 7event: x\ndata: null\n\n')
    expect(eventText({ event: 'state\nid: 9', data: 1 })).to.equal('event: stateid: 9\ndata: 1\n\n')
  })

  it('reads the next event only after the last one was sent, and disconnects a reader that stalls', async () => {
    const watched = events(100_000)
    offered = watched.source
    options = { stallMs: 300 }
    const socket = await openReader()
    socket.pause()
    await sent
    // As many as fit into the buffers of the kernel, plus one. Without backpressure it would be all events.
    expect(watched.requested).to.be.below(200)
    expect(watched.stopped).to.equal(1)
    socket.destroy()
  })

  it('waits for a slow reader', async () => {
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
    expect(watched.stopped).to.equal(1)
  })

  it('sends heartbeats while there are no events, and ends when a new edition replaces its own', async () => {
    const watched = events(1, 1)
    offered = watched.source
    let beats = 0
    options = { heartbeatMs: 5, isCurrent: () => (beats += 1) < 10 }
    const text = await (await fetch(address())).text()
    await sent
    expect(text).to.match(/^id: 1\ndata: "x"\n\n(: still here\n\n){3,}$/)
    expect(watched.stopped).to.equal(1)
  })

  it('stops its source when the reader disconnects between events', async () => {
    const watched = events(1, 0)
    offered = watched.source
    options = {}
    const socket = await openReader()
    socket.destroy()
    await sent
    expect([watched.requested, watched.stopped]).to.deep.equal([1, 1])
  })
})
