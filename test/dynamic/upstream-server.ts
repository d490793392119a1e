/** A service for upstream products: it records the requests that it receives, and answers as a test tells it to. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface UpstreamServer {
  readonly url: string
  /** The requests it received. A test may empty the list. */
  readonly requests: ReceivedRequest[]
  /** All connections that were ever opened. */
  readonly connections: ReadonlySet<Socket>
  /** How the next requests are answered. */
  answer: (response: ServerResponse, received: ReceivedRequest, request: IncomingMessage) => void
  close(): Promise<void>
}

export async function openUpstreamServer(): Promise<UpstreamServer> {
  const connections = new Set<Socket>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const received = { method, url, headers, body: Buffer.concat(chunks) }
      upstream.requests.push(received)
      upstream.answer(response, received, request)
    })
  })
  server.on('connection', (socket) => connections.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const upstream: UpstreamServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    connections,
    answer: (response) => response.end('{}'),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return upstream
}
