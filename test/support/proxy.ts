/** A node or facilitator that misbehaves on demand: an HTTP proxy before a real one. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * What is done with a request: `cut` breaks the connection once the real one has answered; an object is answered in the
 * place of the real answer, which is asked for first where `after` is true.
 */
export type Fault = 'pass' | 'cut' | 'hang' | { readonly status: number; readonly body: string; readonly after?: true }

export interface Proxy {
  readonly url: string
  /** Bodies that arrived, as text. */
  readonly requests: readonly string[]
  /** Decides by path and body; the default passes everything on. */
  script(decide: (path: string, body: string) => Fault): void
  /** Nobody listens any more. */
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
