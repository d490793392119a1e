/** Symbols of the shipped catalog, bought with payments on a local chain while the venues of one of them fail. */
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import { offer } from '../support/agent.ts'
import type { TestChain } from '../support/chain.ts'
import { openVenueGateway, startVenueChain, type VenueGateway } from './venue-gateway.ts'
import { openVenueKit, type VenueKit } from './venue-kit.ts'

const COVERED = ['BTC-USD', 'ETH-USD', 'DOGE-USD', 'BNB-USD']
const DOWN = 'ETH-USD'

describe('a buyer of several symbols', function () {
  this.timeout(240_000)
  let chain: TestChain
  let kit: VenueKit
  let shop: VenueGateway
  before(async function () {
    chain = await startVenueChain(this)
    kit = await openVenueKit()
    shop = await openVenueGateway(chain, { kit, symbols: COVERED, sources: [], requestSeconds: 30 })
    // The history of all of them.
    const isComplete = async () => {
      const found = await listed()
      return found !== undefined && found.every(({ status }) => status === 'ok')
    }
    for (let round = 0; round < 20 && !(await isComplete()); round += 1) await shop.jobs.advance(60, 20)
  })
  after(async () => {
    await shop?.close()
    await kit?.close()
    await chain?.stop()
  })

  /** Moves the clock. The gateway asks how fresh data are once a second of real time, however far that is. */
  const advance = async (seconds: number): Promise<void> => {
    await shop.jobs.advance(seconds, 30)
    await delay(1_050)
  }
  const listed = async () =>
    (await shop.get('/v1/symbols'))['symbols'] as {
      symbol: string
      status: string
      bars: { since: string; age_seconds: number; coverage: number }
      venues: { venue: string; live: boolean; answers: boolean }[]
      regime: { since: string; complete: boolean } | null
    }[]
  const regime = (symbol: string) => shop.buy(`/v1/regime/current?symbol=${symbol}`)
  const cost = (symbol: string) =>
    shop.buy('/v1/cost/estimate', {
      method: 'POST',
      body: { symbol, side: 'buy', notional_usd: 10_000, order_type: 'market' },
    })

  it('finds all of them in the free list, with their bars, venues and regimes', async () => {
    const found = await listed()
    expect(found.map(({ symbol }) => symbol)).to.deep.equal(COVERED)
    for (const { symbol, status, bars, venues, regime: of } of found) {
      expect([symbol, status, of?.complete]).to.deep.equal([symbol, 'ok', true])
      expect(bars.coverage, symbol).to.be.above(0.99)
      expect(bars.age_seconds, symbol).to.be.below(120)
      expect(Date.parse(of!.since) - Date.parse(bars.since), symbol).to.equal(25 * 3_600_000)
      expect(venues.filter(({ live }) => live).length, symbol).to.be.at.least(3)
    }
  })

  it('buys the regime and the cost of each, over HTTP', async () => {
    for (const symbol of COVERED) {
      const label = await regime(symbol)
      expect([label.code, label.body['symbol'], label.charged]).to.deep.equal(['ok', symbol, label.price])
      const estimate = await cost(symbol)
      expect([estimate.code, estimate.body['symbol'], estimate.charged]).to.deep.equal(['ok', symbol, estimate.price])
      const price = (estimate.body['inputs'] as { price: number }).price
      const truth = kit.market.price(symbol, kit.clock.now())
      expect(price / truth, symbol).to.be.within(0.99, 1.01)
    }
    const plain = await shop.buy('/v1/regime/current')
    expect(plain.body['symbol']).to.equal('BTC-USD')
    // The newest label may be a minute old.
    const { body } = await regime('BNB-USD')
    const asOf = Date.parse(body['as_of'] as string)
    const start = new Date(asOf - 60_000).toISOString()
    const history = await shop.buy(`/v1/regime/history?symbol=bnb&limit=2&start=${start}`)
    expect([history.code, history.body['symbol'], history.body['count']]).to.deep.equal(['ok', 'BNB-USD', 2])
    const rows = history.body['snapshots'] as { as_of: string }[]
    expect(rows.map((row) => Date.parse(row.as_of))).to.deep.equal([asOf - 60_000, asOf])
  })

  it('is told by a preflight of the regime of the market that the order is for', async () => {
    const order = { side: 'buy', notional_usd: 10_000 }
    for (const [symbol, market] of [...COVERED.map((one) => [one, one]), ['ETH-PERP', 'ETH-USD']]) {
      const preflight = await shop.buy('/v1/trade/preflight', { method: 'POST', body: { ...order, symbol } })
      const { regime: used, checks } = preflight.body as { regime: { symbol: string }; checks: { detail: string }[] }
      expect([symbol, preflight.code, used.symbol]).to.deep.equal([symbol, 'ok', market])
      expect(checks[0]!.detail).to.match(new RegExp(`^${market} is `))
    }
  })

  it('finds the parameter among the arguments of the MCP tools, and names a symbol there', async () => {
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`)))
    const { tools } = await client.listTools()
    for (const name of ['get_regime_sample', 'get_regime_current', 'get_regime_history', 'estimate_execution_cost'])
      expect(tools.find((tool) => tool.name === name)!.inputSchema.properties).to.have.property('symbol')
    const call = (symbol: string) => client.callTool({ name: 'get_regime_sample', arguments: { symbol } })
    const [bitcoin, dogecoin] = [await call('BTC-USD'), await call('DOGE-USD')]
    expect(
      [bitcoin, dogecoin].map(({ structuredContent }) => (structuredContent as { symbol: string }).symbol),
    ).to.deep.equal(['BTC-USD', 'DOGE-USD'])
    expect(JSON.stringify(await call('SHIB-USD'))).to.match(/SHIB-USD is not covered/)
    await client.close()
  })

  it('is not charged for a history without a row of the origin it asks for', async () => {
    // Minutes that were late while the history was still being computed are older than this.
    await shop.jobs.advance(180, 10)
    const history = (origin: string) => shop.buy(`/v1/regime/history?symbol=bnb&limit=2&origin=${origin}`)
    const { status, code, charged } = await history('catchup')
    expect([status, code, charged]).to.deep.equal([404, 'empty_not_sold', 0n])
    const live = await history('live')
    expect([live.status, live.charged]).to.deep.equal([200, live.price])
    expect(live.body['count']).to.be.above(0)
  })

  it('is not charged for a symbol that is not covered', async () => {
    const { status, code, charged } = await regime('SHIB-USD')
    expect([status, code, charged]).to.deep.equal([404, 'not_found', 0n])
  })

  it('is refused the one that is down and not charged, and buys the others', async () => {
    for (const venue of ['coinbase', 'kraken', 'bitstamp', 'bitfinex'])
      kit.faults.start('unavailable', { venue, symbol: DOWN })
    // Its bars are five to six minutes old, and every check of their age fails.
    await advance(360)
    const order = { symbol: DOWN, side: 'buy', notional_usd: 10_000 }
    const preflight = await shop.buy('/v1/trade/preflight', { method: 'POST', body: order })
    for (const late of [await cost(DOWN), preflight])
      expect([late.status, late.code, late.charged]).to.deep.equal([503, 'data_stale', 0n])
    await advance(540)
    for (const symbol of COVERED) {
      const label = await regime(symbol)
      const expected = symbol === DOWN ? [503, 0n] : [200, label.price]
      expect([label.status, label.charged], symbol).to.deep.equal(expected)
    }
    expect((await cost(DOWN)).charged).to.equal(0n)
    // The history is sold as far as it reaches, and says so.
    const part = await shop.buy(`/v1/regime/history?symbol=${DOWN}&limit=30`)
    expect([part.status, part.charged]).to.deep.equal([200, part.price])
    expect(part.body['coverage']).to.be.within(0.5, 0.8)
    const late = await shop.buy(`/v1/regime/history?symbol=${DOWN}&limit=5`)
    expect([late.status, late.charged]).to.deep.equal([503, 0n])
    expect(late.body['message']).to.contain('0 of 4 venues answer')
    const states = await listed()
    expect(states.filter(({ status }) => status !== 'ok').map(({ symbol, status }) => [symbol, status])).to.deep.equal([
      [DOWN, 'down'],
    ])
    const { status, freshness } = (await shop.get('/health')) as {
      status: string
      freshness: { operation: string; request?: string; status: string }[]
    }
    const stale = freshness.filter((state) => state.status === 'stale')
    expect([status, ...stale.map(({ operation, request }) => request ?? operation)]).to.include.members([
      'degraded',
      `GET /v1/regime/current?symbol=${DOWN}`,
      `POST /v1/cost/estimate {"symbol":"${DOWN}"}`,
      `POST /v1/trade/preflight {"symbol":"${DOWN}"}`,
    ])
    for (const { request = DOWN } of stale) expect(request).to.contain(DOWN)
    const told = async (search: string) => {
      const { v1 } = await offer(`${shop.url}/v1/regime/current${search}`)
      return (v1 as unknown as { freshness: object }).freshness
    }
    expect(await told(`?symbol=${DOWN}`)).to.deep.include({ status: 'stale', missing: ['newest', 'sources'] })
    for (const search of ['', '?symbol=BTC-USD', '?symbol=DOGE-USD'])
      expect(await told(search), search).to.include({ status: 'fresh' })
    kit.faults.clear()
    await advance(600)
    expect((await regime(DOWN)).status).to.equal(200)
  })

  it('is not charged for a regime while more than a quarter of the last hour has no bar', async () => {
    const stop = ['coinbase', 'kraken'].map((venue) => kit.faults.start('price_factor', { venue, symbol: 'BTC-USD' }))
    await advance(1800)
    for (const end of stop) end()
    await advance(240)
    const label = await regime('BTC-USD')
    expect([label.status, label.body['missing'], label.charged]).to.deep.equal([503, ['coverage'], 0n])
    expect((await regime('ETH-USD')).status).to.equal(200)
    // Most of these minutes are asked for again within ten minutes.
    await advance(540)
    expect((await regime('BTC-USD')).status).to.equal(200)
  })
})
