/**
 * The process that calls the gateway and the plain server for `npm run bench:loop`, 50 times a second each, until it is
 * told to stop. It reports how long each call took, from when it was due.
 */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long calls took in milliseconds: of the gateway, and of a server without work. */
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
    calls.push(callOnce(url).then(() => performance.now() - due))
  }
  return Promise.all(calls)
}

function callOnce(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent }, (response) => {
      if (response.statusCode !== 402) reject(new Error(`${url} answered ${response.statusCode}`))
      response.resume().on('end', resolve).on('error', reject)
    })
    outgoing.on('error', reject).end()
  })
}

process.once('message', () => (isOver = true))
const [ofGateway = '', ofPlain = ''] = process.argv.slice(2)
const [gateway, plain] = await Promise.all([probe(ofGateway, 0), probe(ofPlain, EVERY_MS / 2)])
process.send?.({ gateway, plain } satisfies Waits, () => process.exit())
