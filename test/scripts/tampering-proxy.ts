/** A proxy that changes the answers of a service, so that tests can plant faults in them. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ProxiedAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

export type Tampering = (answer: ProxiedAnswer, request: { readonly method: string; readonly path: string }) => void

export interface TamperingProxy {
  readonly url: string
  /** Address of the real service. */
  target: string
  /** Changes each answer before it is sent. */
  tampering: Tampering
  close(): Promise<void>
}

/** Headers that the proxy's own server sets. */
const HOP_HEADERS = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'content-encoding', 'date']

export async function openTamperingProxy(): Promise<TamperingProxy> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = 'GET', url: path = '/' } = request
      const headers = Object.entries(request.headers).filter(
        ([name]) => !['host', 'connection', 'content-length'].includes(name),
      )
      const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}
      const sent = {
        method,
        headers: Object.fromEntries(headers) as Record<string, string>,
        redirect: 'manual' as const,
      }
      fetch(proxy.target + path, { ...sent, ...body }).then(
        async (upstream) => {
          const kept = [...upstream.headers].filter(([name]) => !HOP_HEADERS.includes(name))
          const answer = { status: upstream.status, headers: Object.fromEntries(kept), body: await upstream.text() }
          proxy.tampering(answer, { method, path })
          response.writeHead(answer.status, answer.headers).end(answer.body)
        },
        () => response.writeHead(502).end(),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const proxy: TamperingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target: '',
    tampering: () => {},
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}
