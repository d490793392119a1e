/** A flood from one address: free requests keep nobody there from buying, and purchases keep nobody from reading. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { expect } from 'chai'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'

/** Requests in ten seconds, as docs/operations.md says. */
const LIMIT = 600
const WINDOW_MS = 10_000
const FLOOD = LIMIT + 50

describe('a flood from one address', () => {
  let live: LiveGateway
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  let callers = 0
  before(async () => {
    live = await openLiveGateway({ own: true, environment: { TRUSTED_PROXIES: '127.0.0.1' } })
  })
  after(async () => {
    agent.destroy()
    await live.close()
  })

  /** Sends requests of one address at once. Returns how often each status was answered. */
  type Send = (method: string, path: string, body?: string, headers?: Record<string, string>) => Promise<number>

  function newCaller(): Send {
    callers += 1
    const address = `198.51.100.${callers}`
    return async (method, path, body, headers = {}) => {
      const type = body === undefined ? {} : { 'content-type': 'application/json' }
      const accept = 'application/json, text/event-stream'
      const all = { 'x-forwarded-for': address, accept, ...type, ...headers }
      const sent = request(live.url + path, { agent, method, headers: all })
      sent.end(body)
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      answer.resume()
      await once(answer, 'end')
      return answer.statusCode ?? 0
    }
  }

  /** Runs a test of a new caller, again if it fails after more than one window: a busy machine may be too slow for a flood. */
  async function withinWindow(test: (send: Send) => Promise<void>): Promise<void> {
    const began = performance.now()
    try {
      await test(newCaller())
    } catch (error) {
      if (performance.now() - began < WINDOW_MS) throw error
      await withinWindow(test)
    }
  }

  async function flood(one: () => Promise<number>): Promise<Readonly<Record<number, number>>> {
    const counts: Record<number, number> = {}
    for (const status of await Promise.all(Array.from({ length: FLOOD }, one)))
      counts[status] = (counts[status] ?? 0) + 1
    return counts
  }

  const toolCall = (name: string): string =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } })
  const quote = (send: Send) => send('GET', '/v1/regime/current')
  const freeTool = (send: Send) => send('POST', '/mcp', toolCall('get_pricing'))
  const pricedTool = (send: Send) => send('POST', '/mcp', toolCall('get_regime_current'))

  for (const [what, one] of Object.entries({
    'of documents': (send: Send) => send('GET', '/pricing.json'),
    'of free forms': (send: Send) => send('POST', '/founding', '{}'),
    'of addresses that do not exist': (send: Send) => send('GET', '/v1/nothing'),
    'of assets': (send: Send) => send('GET', '/assets/nothing.css'),
    'of free tools': freeTool,
  }))
    it(`${what} is refused, and a sale is not, over HTTP or MCP`, () =>
      withinWindow(async (send) => {
        expect((await flood(() => one(send)))[429]).to.equal(FLOOD - LIMIT)
        expect(await quote(send)).to.equal(402)
        expect(await pricedTool(send)).to.equal(200)
        expect(await send('GET', '/pricing')).to.equal(429)
        expect(await freeTool(send)).to.equal(429)
      }))

  for (const [what, one] of Object.entries({
    'of unpaid calls': quote,
    'of invalid payments': (send: Send) => send('GET', '/v1/regime/current?x=1', undefined, { 'x-payment': 'e30=' }),
    'of priced tools': pricedTool,
  }))
    it(`${what} is refused, and free routes and tools are not`, () =>
      withinWindow(async (send) => {
        expect((await flood(() => one(send)))[429]).to.equal(FLOOD - LIMIT)
        expect(await send('GET', '/pricing.json')).to.equal(200)
        expect(await freeTool(send)).to.equal(200)
        expect(await quote(send)).to.equal(429)
      }))

  it('of messages that are long to read is refused before they are read, and a sale is not', () =>
    withinWindow(async (send) => {
      const long = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { text: 'x'.repeat(20_000) } })
      expect((await flood(() => send('POST', '/mcp', long)))[429]).to.equal(FLOOD - LIMIT)
      expect(await quote(send)).to.equal(402)
      expect(await pricedTool(send)).to.equal(200)
    }))
})
