/** An HTTP proxy in front of a real node or facilitator that misbehaves on demand. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type LoopbackServer, startLoopbackServer } from './loopback-server.ts'

/**
 * What happens to a request. `cut` closes the connection once the target has answered. An object replaces the answer of
 * the target, which receives the request first if `after` is true.
 */
export type Fault = 'pass' | 'cut' | 'hang' | { readonly status: number; readonly body: string; readonly after?: true }

export interface Proxy extends LoopbackServer {
  /** The bodies of all requests, as text. */
  readonly requests: readonly string[]
  /** Sets how a fault is chosen by path and body; the default forwards everything. */
  script(decide: (path: string, body: string) => Fault): void
}

export async function startProxy(target: string): Promise<Proxy> {
  const requests: string[] = []
  let decide: (path: string, body: string) => Fault = pass

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

  return {
    ...(await startLoopbackServer(handle)),
    requests,
    script: (next) => {
      decide = next
    },
  }
}

function pass(): Fault {
  return 'pass'
}
