/**
 * The process that asks a gateway and the plain server for a 402, 50 times a second each, from "start" to
 * "stop". It reports how long each call took, from when it was due.
 */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long calls took in milliseconds, infinity without a 402: of the gateway, and of a server without work. */
export interface Waits {
  readonly gateway: number[]
  readonly plain: number[]
}

const EVERY_MS = 20
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
let isOver = false

/** Calls the route every 20 ms. */
async function probe(url: string, delayMs: number): Promise<number[]> {
  const calls: Promise<number>[] = []
  const began = performance.now() + delayMs
  for (let count = 0; !isOver; count += 1) {
    const due = began + count * EVERY_MS
    await sleep(Math.max(0, due - performance.now()))
    calls.push(callOnce(url).then((status) => (status === 402 ? performance.now() - due : Number.POSITIVE_INFINITY)))
  }
  return Promise.all(calls)
}

/** Resolves to the status, or to 0 if there is none. */
function callOnce(url: string): Promise<number> {
  return new Promise((resolve) => {
    const outgoing = request(url, { agent }, (response) => {
      response
        .resume()
        .on('end', () => resolve(response.statusCode ?? 0))
        .on('error', () => resolve(0))
    })
    outgoing.on('error', () => resolve(0)).end()
  })
}

const [ofGateway = '', ofPlain = ''] = process.argv.slice(2)

async function probeBoth(): Promise<void> {
  isOver = false
  const [gateway, plain] = await Promise.all([probe(ofGateway, 0), probe(ofPlain, EVERY_MS / 2)])
  process.send?.({ gateway, plain } satisfies Waits)
}

process.on('message', (word) => {
  if (word === 'start') void probeBoth()
  else isOver = true
})
process.send?.('ready')
