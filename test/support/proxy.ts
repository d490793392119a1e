/** An HTTP proxy in front of a real node or facilitator that misbehaves on demand. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * What happens to a request. `cut` closes the connection once the target has answered. An object replaces the answer of
 * the target, which receives the request first if `after` is true.
 */
export type Fault = 'pass' | 'cut' | 'hang' | { readonly status: number; readonly body: string; readonly after?: true }

export interface Proxy {
  readonly url: string
  /** The bodies of all requests, as text. */
  readonly requests: readonly string[]
  /** Sets how a fault is chosen by path and body; the default forwards everything. */
  script(decide: (path: string, body: string) => Fault): void
  /** Stops listening. */
  down(): Promise<void>
  /** Listens again at the same address. */
  up(): Promise<void>
  close(): Promise<void>
}

export async function startProxy(target: string): Promise<Proxy> {
  const requests: string[] = []
  let decide: (path: string, body: string) => Fault = pass
  let server: Server
  let port = 0

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const path = request.url ?? '/'
    requests.push(body)
    const fault = decide(path, body)
    if (fault === 'hang') return
    const json = { 'content-type': 'application/json' }
    const replace = typeof fault === 'object' ? fault : null
    if (replace && !replace.after) return void response.writeHead(replace.status, json).end(replace.body)
    const answer = await fetch(target + path, {
      method: request.method ?? 'POST',
      headers: json,
      ...(body === '' ? {} : { body }),
    })
    const text = await answer.text()
    if (fault === 'cut') response.socket?.destroy()
    else response.writeHead(replace?.status ?? answer.status, json).end(replace?.body ?? text)
  }

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
    requests,
    script: (next) => {
      decide = next
    },
    down,
    up,
    close: async () => {
      if (server.listening) await down()
    },
  }
}

function pass(): Fault {
  return 'pass'
}
