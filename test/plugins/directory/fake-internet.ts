/**
 * A fake internet: names resolve to public addresses, but connections to them lead to one local server. Code under test
 * sees only the public addresses.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { World } from '../../../plugins/directory/visits.ts'

export type Responder = (request: IncomingMessage, response: ServerResponse) => unknown

export interface FakeInternet {
  readonly world: World
  /** Names that were resolved, in order. */
  readonly resolved: string[]
  /** Addresses that were connected to: "93.184.216.34:443". */
  readonly dialled: string[]
  /** Requests in order: "GET http://shop.example.org/path". */
  readonly requests: string[]
  /** Maximum number of requests open at once, in total and per network (the first three bytes of an address). */
  readonly peak: { total: number; byNetwork: Record<string, number> }
  /** Adds a site at an address. Several names may share it. */
  site(host: string, address: string, answer?: Responder): void
  /** Sets what a name resolves to: one answer per lookup; the last one repeats. */
  name(host: string, ...answers: readonly (readonly string[])[]): void
  close(): Promise<void>
}

export const notFound: Responder = (_, response) => response.writeHead(404).end()

export async function openFakeInternet(): Promise<FakeInternet> {
  const names = new Map<string, (readonly string[])[]>()
  const sites = new Map<string, Responder>()
  const [resolved, dialled, requests]: [string[], string[], string[]] = [[], [], []]
  const peak = { total: 0, byNetwork: {} as Record<string, number> }
  const open = new Map<string, number>()
  const sockets = new Set<Socket>()
  let total = 0

  const server = createServer((request, response) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '')
    requests.push(`${request.method} http://${request.headers.host}${request.url}`)
    const network = (names.get(host)?.at(-1)?.[0] ?? '').split('.').slice(0, 3).join('.')
    total += 1
    open.set(network, (open.get(network) ?? 0) + 1)
    peak.total = Math.max(peak.total, total)
    peak.byNetwork[network] = Math.max(peak.byNetwork[network] ?? 0, open.get(network)!)
    response.on('close', () => {
      total -= 1
      open.set(network, open.get(network)! - 1)
    })
    ;(sites.get(host) ?? notFound)(request, response)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    resolved,
    dialled,
    requests,
    peak: peak,
    world: {
      async resolve(host) {
        resolved.push(host)
        const answers = names.get(host)
        if (!answers) throw new Error(`getaddrinfo ENOTFOUND ${host}`)
        return answers.length > 1 ? answers.shift()! : answers[0]!
      },
      dial(address, originalPort) {
        dialled.push(`${address}:${originalPort}`)
        return { address: '127.0.0.1', port }
      },
    },
    site(host, address, answer = notFound) {
      names.set(host, [[address]])
      sites.set(host, answer)
    },
    name: (host, ...answers) => void names.set(host, [...answers]),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A 402 of either version. */
export const paymentRequired =
  (amount: string, payTo: string, version: 1 | 2 = 2): Responder =>
  (_, response) => {
    const asset = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
    const v2 = { x402Version: 2, accepts: [{ scheme: 'exact', network: 'eip155:8453', asset, amount, payTo }] }
    const v1 = {
      x402Version: 1,
      accepts: [{ scheme: 'exact', network: 'base', asset, maxAmountRequired: amount, payTo }],
    }
    if (version === 1) return response.writeHead(402).end(JSON.stringify(v1))
    const header = Buffer.from(JSON.stringify(v2)).toString('base64')
    return response.writeHead(402, { 'payment-required': header }).end('{}')
  }
