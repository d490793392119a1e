/** Stands in front of a service and changes its answers, to plant faults. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Answered {
  status: number
  headers: Record<string, string>
  body: string
}

export type Tampering = (answer: Answered, asked: { readonly method: string; readonly path: string }) => void

export interface Tamper {
  readonly url: string
  /** Where the answers really come from. */
  target: string
  tampering: Tampering
  close(): Promise<void>
}

const OWN = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'content-encoding', 'date']

export async function openTamper(): Promise<Tamper> {
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
      fetch(tamper.target + path, { ...sent, ...body }).then(
        async (heard) => {
          const kept = [...heard.headers].filter(([name]) => !OWN.includes(name))
          const answer = { status: heard.status, headers: Object.fromEntries(kept), body: await heard.text() }
          tamper.tampering(answer, { method, path })
          response.writeHead(answer.status, answer.headers).end(answer.body)
        },
        () => response.writeHead(502).end(),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const tamper: Tamper = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target: '',
    tampering: () => {},
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return tamper
}
