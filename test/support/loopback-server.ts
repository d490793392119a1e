/** A server of a test on loopback that can go down and come back at the same address. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export interface LoopbackServer {
  readonly url: string
  /** Ends every connection and stops listening. Then every client knows that its connection has ended. */
  down(): Promise<void>
  /** Listens again at the same address. */
  up(): Promise<void>
  close(): Promise<void>
}

/** Listens on a free port. A request whose `handle` fails loses its connection. */
export async function startLoopbackServer(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<LoopbackServer> {
  let server: Server
  let port = 0
  let isDown = false
  const connections = new Set<Socket>()

  async function up(): Promise<void> {
    server = createServer((request, response) => {
      handle(request, response).catch(() => response.destroy())
    })
    server.on('connection', (socket) => {
      connections.add(socket)
      socket.once('close', () => connections.delete(socket))
      if (isDown) socket.destroy()
    })
    isDown = false
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  }

  async function down(): Promise<void> {
    isDown = true
    // A connection that is ended, not destroyed, closes once its client has ended it too.
    const ended = [...connections].map((socket) => new Promise((resolve) => socket.end().once('close', resolve)))
    await Promise.all(ended)
    await new Promise((resolve) => server.close(resolve))
  }

  await up()
  return {
    url: `http://127.0.0.1:${port}`,
    down,
    up,
    close: async () => {
      if (server.listening) await down()
    },
  }
}
