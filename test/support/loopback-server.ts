/** A server of a test on loopback that can go down and come back at the same address. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface LoopbackServer {
  readonly url: string
  /** Stops listening. */
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

  async function up(): Promise<void> {
    server = createServer((request, response) => {
      handle(request, response).catch(() => response.destroy())
    })
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  }

  async function down(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
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
