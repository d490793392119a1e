/** A node in front of a real one that says what a test wants: a proxy that replaces the results of chosen methods. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { TOPICS, word } from '../../gateway/methods/exact-evm/eip3009.ts'
import { type LoopbackServer, startLoopbackServer } from './loopback-server.ts'

/** Returns what the node says instead of the true result. */
export type Lie = (result: unknown, params: readonly unknown[]) => unknown

export interface LyingNode extends LoopbackServer {
  /** Replaces the results of these methods. Transactions that it receives meanwhile are not passed on if it lies about them. */
  lie(lies: Readonly<Record<string, Lie>>): void
}

interface Message {
  readonly id: unknown
  readonly method: string
  readonly params?: readonly unknown[]
}

const SEND = 'eth_sendRawTransaction'

/** Changes a receipt, and leaves it alone while there is none. */
const ofReceipt =
  (change: (receipt: Receipt) => object): Lie =>
  (receipt) =>
    receipt === null ? null : { ...(receipt as Receipt), ...change(receipt as Receipt) }

interface Receipt {
  readonly logs: readonly { readonly topics: readonly string[] }[]
}

/** What a node may say of a transaction that has moved money, by what it does. */
export const LIES_ABOUT_SETTLEMENTS: Readonly<Record<string, Readonly<Record<string, Lie>>>> = {
  'does not know the transaction': { eth_getTransactionReceipt: () => null, eth_getLogs: () => [] },
  'puts it into another block': {
    eth_getTransactionReceipt: ofReceipt(() => ({ blockHash: `0x${'0f'.repeat(32)}` })),
  },
  'says that it failed': { eth_getTransactionReceipt: ofReceipt(() => ({ status: '0x0', logs: [] })) },
  'says that it moved another amount': {
    eth_getTransactionReceipt: ofReceipt(({ logs }) => ({
      logs: logs.map((log) => (log.topics[0] === TOPICS.transfer ? { ...log, data: `0x${word(1n)}` } : log)),
    })),
  },
}

/** Starts a node that tells the truth of `target` until it is told to lie. */
export async function startLyingNode(target: string): Promise<LyingNode> {
  let lies: Readonly<Record<string, Lie>> = {}
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
  return {
    ...(await startLoopbackServer(answer)),
    lie: (next) => {
      lies = next
    },
  }
}
