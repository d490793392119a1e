/** A node in front of a real one that says what a test wants: a proxy that replaces the results of chosen methods. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** Returns what the node says instead of the true result. */
export type Lie = (result: unknown, params: readonly unknown[]) => unknown

export interface LyingNode {
  readonly url: string
  /** Replaces the results of these methods. Transactions that it receives meanwhile are not passed on if it lies about them. */
  lie(lies: Readonly<Record<string, Lie>>): void
  close(): Promise<void>
}

interface Message {
  readonly id: unknown
  readonly method: string
  readonly params?: readonly unknown[]
}

const SEND = 'eth_sendRawTransaction'

/** Starts a node that tells the truth of `target` until it is told to lie. */
export async function startLyingNode(target: string): Promise<LyingNode> {
  let lies: Readonly<Record<string, Lie>> = {}
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await text(request)) as Message | readonly Message[]
    const messages = [body].flat() as readonly Message[]
    const headers = { 'content-type': 'application/json' }
    const isKept = messages.some(({ method }) => method === SEND && lies[SEND] !== undefined)
    if (isKept) {
      const kept = messages.map(({ id, params = [] }) => ({ jsonrpc: '2.0', id, result: lies[SEND]?.(null, params) }))
      response.writeHead(200, headers).end(JSON.stringify(Array.isArray(body) ? kept : kept[0]))
      return
    }
    const truth = await fetch(target, { method: 'POST', headers, body: JSON.stringify(body) })
    const replies = [(await truth.json()) as object].flat() as readonly { id?: unknown; result?: unknown }[]
    const told = replies.map((reply) => {
      const { method = '', params = [] } = messages.find(({ id }) => id === reply.id) ?? {}
      const lie = lies[method]
      return lie && 'result' in reply ? { ...reply, result: lie(reply.result, params) } : reply
    })
    response.writeHead(200, headers).end(JSON.stringify(Array.isArray(body) ? told : told[0]))
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lie: (next) => {
      lies = next
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
