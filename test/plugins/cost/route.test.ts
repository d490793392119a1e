import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { expect } from 'chai'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { CostEstimate } from '../../../schemas/types.d.ts'
import { proves } from '../../requirements.ts'
import { ask, buy, json, offer, payment, receipt, send } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { signPayment } from '../../support/wallet.ts'

const root = resolve(import.meta.dirname, '../../..')
const ORDER = { symbol: 'btcusdt', side: 'buy', notional_usd: 1_000_000 }

describe('POST /v1/cost/estimate', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cost-'))
  let gateway: TestGateway
  let url: string
  before(async () => {
    for (const name of ['service.json', 'market.json', 'cost.json'])
      cpSync(join(root, 'catalog', name), join(folder, name))
    gateway = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
    url = `${gateway.url}/v1/cost/estimate`
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  it('asks for 0.01 and answers a paid call with components that add up to the total', async () => {
    proves('cost-estimate')
    const { response, v1 } = await offer(url, { method: 'POST', body: ORDER })
    expect(response.status).to.equal(402)
    expect(v1.accepts[0]).to.include({ maxAmountRequired: '10000' })
    for (const order_type of ['market', 'limit', 'twap', 'vwap', 'pov']) {
      const paid = await buy(url, gateway.wallet, 2, { method: 'POST', body: { ...ORDER, order_type } })
      expect(paid.status).to.equal(200)
      expect(receipt(paid)).to.include({ success: true })
      const cost = await json(paid)
      expect(cost).to.include({ symbol: 'BTC-USD', side: 'buy', order_type, data_mode: 'sample', confidence: 'high' })
      const components = Object.values(cost['components'] as Record<string, number>)
      expect(cost['total_bps']).to.be.closeTo(
        components.reduce((sum, part) => sum + part, 0),
        1e-6,
      )
      expect(Object.keys(cost).filter((name) => name.endsWith('_bps'))[0], 'the market comes first').to.equal(
        'market_bps',
      )
      expect(cost['market_bps']).to.be.closeTo(components[0]! + components[1]!, 1e-9)
      expect(Date.parse(String(cost['as_of']))).to.be.at.most(gateway.now().getTime())
    }
  })

  it('accepts a payment from an unmodified public client', async () => {
    const client = new x402Client().register('eip155:84532', new ExactEvmScheme(gateway.wallet))
    const headers = { 'content-type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify({ ...ORDER, symbol: 'AAPL', side: 'sell' }) }
    const response = await wrapFetchWithPayment(fetch, client)(url, request)
    expect(response.status).to.equal(200)
    expect(receipt(response)).to.include({ success: true, network: 'eip155:84532' })
    const estimate = await json(response)
    expect(estimate).to.include({ symbol: 'AAPL', side: 'sell' })
    // The confidence depends on how much of today's session has passed.
    expect(estimate['confidence']).to.be.oneOf(['medium', 'low'])
  })

  it('is an MCP tool that takes the payment as an argument', async () => {
    proves('mcp-payment', 'mcp-tools')
    const mcp = new Client({ name: 'buyer', version: '1.0.0' })
    await mcp.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`)))
    const unpaid = await mcp.callTool({ name: 'estimate_execution_cost', arguments: ORDER })
    expect(unpaid.isError).to.equal(true)
    const { accepts } = unpaid.structuredContent as { accepts: never[] }
    const payment_signature = await signPayment({
      account: gateway.wallet,
      requirement: accepts[0] as never,
      version: 2,
    })
    const paid = await mcp.callTool({ name: 'estimate_execution_cost', arguments: { ...ORDER, payment_signature } })
    expect(paid.isError ?? false).to.equal(false)
    expect(paid.structuredContent).to.include({ symbol: 'BTC-USD', order_type: 'market', model: 'cost/3' })
    const { market_bps, total_bps } = paid.structuredContent as Record<string, number>
    expect(total_bps! - market_bps!).to.be.closeTo(10, 1e-9)
    await mcp.close()
  })

  it('answers 404 to an unknown symbol, names the field and charges nothing', async () => {
    const header = await payment(url, gateway.wallet, 2, { method: 'POST' })
    const response = await send(url, header, 2, { method: 'POST', body: { ...ORDER, symbol: 'NOPE' } })
    expect(response.status).to.equal(404)
    expect((await json(response))['message']).to.match(/^symbol: NOPE is not covered\. Covered are BTC-USD/)
    const retried = await send(url, header, 2, { method: 'POST', body: ORDER })
    expect(retried.status, 'the payment is still good').to.equal(200)
  })

  const invalidOrders: Record<string, { body: unknown; loc: string[] }> = {
    'an order without a symbol': { body: { side: 'buy', notional_usd: 1 }, loc: ['body', 'symbol'] },
    'a symbol of 33 letters': { body: { ...ORDER, symbol: 'A'.repeat(33) }, loc: ['body', 'symbol'] },
    'an unknown side': { body: { ...ORDER, side: 'hold' }, loc: ['body', 'side'] },
    'a notional of zero': { body: { ...ORDER, notional_usd: 0 }, loc: ['body', 'notional_usd'] },
    'a notional above ten billion': { body: { ...ORDER, notional_usd: 1.1e10 }, loc: ['body', 'notional_usd'] },
    "more than a day's turnover": { body: { ...ORDER, notional_usd: 1e10 }, loc: ['body', 'notional_usd'] },
    'a notional that is not a number': { body: { ...ORDER, notional_usd: 'much' }, loc: ['body', 'notional_usd'] },
    'an unknown order type': { body: { ...ORDER, order_type: 'stop' }, loc: ['body', 'order_type'] },
    'a horizon of two days': { body: { ...ORDER, horizon_minutes: 2880 }, loc: ['body', 'horizon_minutes'] },
    'a participation in the whole volume': {
      body: { ...ORDER, participation_rate: 1 },
      loc: ['body', 'participation_rate'],
    },
    'a negative fee': { body: { ...ORDER, fee_bps: -1 }, loc: ['body', 'fee_bps'] },
    'an unknown field': { body: { ...ORDER, urgency: 'high' }, loc: ['body', 'urgency'] },
  }
  for (const [request, { body, loc }] of Object.entries(invalidOrders))
    it(`answers 422 to ${request} and names the field`, async () => {
      const response = await buy(url, gateway.wallet, 2, { method: 'POST', body })
      expect(response.status).to.equal(422)
      expect(((await json(response))['detail'] as { loc: unknown }[])[0]?.loc).to.deep.equal(loc)
    })

  it('answers 422 to a number that is too large', async () => {
    const header = await payment(url, gateway.wallet, 2, { method: 'POST' })
    const headers = { 'content-type': 'application/json', 'payment-signature': header }
    const body = JSON.stringify(ORDER).replace('1000000', '1e400')
    const response = await fetch(url, { method: 'POST', headers, body })
    expect(response.status).to.equal(422)
  })

  it('answers the largest size within a limit, and the levels of the book, if asked', async () => {
    const estimateOf = async (more: object) =>
      (await json(
        await buy(url, gateway.wallet, 2, { method: 'POST', body: { ...ORDER, ...more } }),
      )) as unknown as CostEstimate
    const plain = await estimateOf({})
    expect(plain).to.not.have.property('largest_within_bps')
    expect(plain.inputs.book).to.not.have.property('levels')
    const asked = await estimateOf({ largest_within_bps: 14, include_book: true })
    const { notional_usd, p90_notional_usd } = asked.largest_within_bps!
    expect(asked.inputs.book!.levels).to.not.be.empty
    expect(p90_notional_usd).to.be.within(1, notional_usd)
    expect((await estimateOf({ notional_usd: p90_notional_usd })).range_bps!.p90).to.be.closeTo(14, 0.1)
  })

  it('lists the covered symbols for free', async () => {
    const response = await ask(`${gateway.url}/v1/cost/symbols`)
    expect(response.status).to.equal(200)
    const { count, symbols } = (await json(response)) as { count: number; symbols: Record<string, unknown>[] }
    expect(count).to.equal(symbols.length)
    const entryOf = (name: string) => symbols.find(({ symbol }) => symbol === name)
    expect(entryOf('BTC-USD')).to.include({
      class: 'spot',
      session: '24x7',
      fee_bps: 10,
      maker_fee_bps: 8,
      perpetual: 'BTC-USD-PERP',
      book: true,
    })
    expect(entryOf('AAPL')).to.include({ class: 'equity', session: 'us_equity', fee_bps: 0.3, book: false })
    for (const symbol of [entryOf('BTC-USD')!['perpetual'], 'SOL-USD', 'NVDA']) {
      const priced = await buy(url, gateway.wallet, 1, { method: 'POST', body: { ...ORDER, symbol } })
      expect(priced.status, String(symbol)).to.equal(200)
    }
  })

  it('prices a perpetual from its spot market where no funding rates are offered, and says so', async () => {
    const body = { ...ORDER, symbol: 'BTC-PERP', notional_usd: 10_000 }
    const { inputs, warnings } = (await json(await buy(url, gateway.wallet, 2, { method: 'POST', body }))) as {
      inputs: { book: object }
      warnings: string[]
    }
    expect(inputs.book).not.to.have.property('instrument')
    expect(warnings).to.deep.equal(['spot_proxy'])
  })
})
