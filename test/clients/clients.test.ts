import {
  Client as StatelessClient,
  StreamableHTTPClientTransport as StatelessTransport,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { expect } from 'chai'
import { Mppx } from 'mppx/client'
import { assets, evm } from 'mppx/evm/client'
import { json, receipt } from '../support/agent.ts'
import { until } from '../support/gateway.ts'
import { openSandboxGateway, type SandboxGateway } from '../support/sandbox.ts'
import { proves } from '../requirements.ts'
import { signPayment } from '../support/wallet.ts'

describe('an unmodified public client', function () {
  this.timeout(120_000)
  let shop: SandboxGateway
  let route: string
  const PRICE = 5000n
  const client = (): x402Client =>
    new x402Client()
      .register('eip155:84532', new ExactEvmScheme(shop.buyer))
      .registerV1('base-sepolia', new ExactEvmSchemeV1(shop.buyer))

  before(async () => {
    shop = await openSandboxGateway()
    route = `${shop.url}/v1/regime/current`
    // The minutes since the first start are classified first. Until then the product answers 503 without charge.
    await until(async () => (await fetch(`${shop.url}/v1/regime/sample`)).status === 200)
  })
  after(() => shop.close())

  it('pays through @x402/fetch with x402 version 2, and exactly the price is transferred', async () => {
    proves('pay-x-payment', 'usdc-to-payee', 'regime-snapshot')
    await shop.moved()
    const response = await wrapFetchWithPayment(fetch, client())(route)
    expect(response.status).to.equal(200)
    const snapshot = await json(response)
    expect(snapshot['regime']).to.be.oneOf(['STABLE', 'VOLATILE'])
    expect(snapshot['confidence']).to.be.within(0.4, 1)
    expect(snapshot['position_scalar']).to.be.within(0.25, 1.5)
    expect(receipt(response)).to.include({ success: true, network: 'eip155:84532' })
    expect(await shop.moved()).to.deep.equal({ buyer: -PRICE, payee: PRICE })
  })

  it('pays through @x402/fetch with x402 version 1', async () => {
    await shop.moved()
    // Without the v2 header the client reads the v1 body and sends X-PAYMENT.
    let header: string | null = null
    const onlyV1: typeof fetch = async (input, init) => {
      header = new Request(input, init).headers.get('x-payment') ?? header
      const response = await fetch(input, init)
      if (response.status !== 402) return response
      const headers = new Headers(response.headers)
      headers.delete('payment-required')
      return new Response(response.body, { status: 402, headers })
    }
    const response = await wrapFetchWithPayment(onlyV1, client())(route)
    expect(response.status).to.equal(200)
    expect(header).to.be.a('string')
    expect(receipt(response, 'x-payment-response')).to.include({ success: true, network: 'base-sepolia' })
    expect(await shop.moved()).to.deep.equal({ buyer: -PRICE, payee: PRICE })
  })

  it('pays through mppx, which signs no more than it was allowed', async () => {
    const buy = (maxAmount: string): Promise<Response> =>
      Mppx.create({
        polyfill: false,
        methods: [evm({ account: shop.buyer, maxAmount, currencies: [assets.baseSepolia.USDC], networks: [84532] })],
      }).fetch(route)
    await shop.moved()
    const refused = await buy('0.001').catch((error: Error) => error.message)
    expect(refused).to.be.a('string')
    expect(await shop.moved()).to.deep.equal({ buyer: 0n, payee: 0n })
    const response = await buy('1')
    expect(response.status).to.equal(200)
    expect(receipt(response)).to.include({ success: true, network: 'eip155:84532' })
    expect(await shop.moved()).to.deep.equal({ buyer: -PRICE, payee: PRICE })
  })

  it('pays over MCP through the official SDK, by payment_signature and by _meta', async () => {
    proves('mcp-address', 'mcp-payment', 'mcp-tools')
    const mcp = new Client({ name: 'buyer', version: '1.0.0' })
    await mcp.connect(new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`)))
    const { tools } = await mcp.listTools()
    const offered = [...shop.gateway.current.catalog.operations.values()].flatMap(({ tool }) => tool ?? [])
    expect(tools.map(({ name }) => name).sort()).to.deep.equal(offered.sort())

    const unpaid = await mcp.callTool({ name: 'get_regime_current', arguments: {} })
    expect(unpaid.isError).to.equal(true)
    const required = unpaid.structuredContent as { accepts: never[] }
    const [text] = unpaid.content as { text: string }[]
    expect(JSON.parse(text?.text ?? '')).to.deep.equal(required)

    const sign = (): Promise<string> =>
      signPayment({ account: shop.buyer, requirement: required.accepts[0] as never, version: 2 })
    await shop.moved()
    const byArgument = { name: 'get_regime_current', arguments: { payment_signature: await sign() } }
    const payload = JSON.parse(Buffer.from(await sign(), 'base64').toString()) as Record<string, unknown>
    const byMeta = { name: 'get_regime_current', arguments: {}, _meta: { 'x402/payment': payload } }
    // As x402-mcp does it: version 1, under a key with a dot.
    const { v1 } = unpaid.structuredContent as { v1: { accepts: never[] } }
    const ofVersion1 = await signPayment({ account: shop.buyer, requirement: v1.accepts[0] as never, version: 1 })
    const withDot = { name: 'get_regime_current', arguments: {}, _meta: { 'x402.payment': ofVersion1 } }
    for (const call of [byArgument, byMeta, withDot]) {
      const paid = await mcp.callTool(call)
      expect(paid.isError ?? false).to.equal(false)
      expect((paid.structuredContent as { regime: string }).regime).to.be.oneOf(['STABLE', 'VOLATILE'])
      expect(paid._meta?.['x402/payment-response']).to.include({ success: true })
      expect(await shop.moved()).to.deep.equal({ buyer: -PRICE, payee: PRICE })
    }
    await mcp.close()
  })

  for (const mode of [{ pin: '2026-07-28' }, 'auto'] as const)
    it(`pays over MCP 2026-07-28 through the client of its SDK (${JSON.stringify(mode)})`, async () => {
      const mcp = new StatelessClient({ name: 'buyer', version: '1.0.0' }, { versionNegotiation: { mode } })
      await mcp.connect(new StatelessTransport(new URL(`${shop.url}/mcp`)))
      expect(mcp.getNegotiatedProtocolVersion()).to.equal('2026-07-28')
      expect(mcp.getServerVersion()).to.have.property('name', shop.gateway.current.catalog.service.name)
      expect((await mcp.listTools()).tools.map(({ name }) => name)).to.include('get_regime_current')
      const call = { name: 'get_regime_current', arguments: {} }
      const unpaid = await mcp.callTool(call)
      const { accepts } = unpaid.structuredContent as { accepts: never[] }
      const payment = await signPayment({ account: shop.buyer, requirement: accepts[0] as never, version: 2 })
      await shop.moved()
      const paid = await mcp.callTool({ ...call, _meta: { 'x402/payment': payment } })
      expect(paid.structuredContent).to.have.property('regime')
      expect(await shop.moved()).to.deep.equal({ buyer: -PRICE, payee: PRICE })
      const refused = await mcp.callTool({ name: 'get_gold', arguments: {} }).catch((error: unknown) => String(error))
      expect(refused).to.contain('Unknown tool: get_gold')
      await mcp.close()
    })

  it('reads over MCP what is free, and is told how to use each product', async () => {
    const clients = [
      new Client({ name: 'buyer', version: '1.0.0' }),
      new StatelessClient({ name: 'buyer', version: '1.0.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    ] as const
    await clients[0].connect(new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`)))
    await clients[1].connect(new StatelessTransport(new URL(`${shop.url}/mcp`)))
    for (const mcp of clients) {
      const { resources } = await mcp.listResources()
      expect(resources.map(({ uri }) => uri)).to.include.members(
        ['/llms.txt', '/openapi.json', '/pricing.json', '/v1/regime/sample'].map((path) => shop.url + path),
      )
      for (const { uri, mimeType } of resources) {
        const [content, ...others] = (await mcp.readResource({ uri })).contents as { text: string; mimeType: string }[]
        expect(others).to.deep.equal([])
        expect(content?.mimeType.split(';')[0], uri).to.equal(mimeType)
        if (uri.endsWith('/llms.txt')) expect(content?.text).to.equal(await (await fetch(uri)).text())
      }
      const unknown = `${shop.url}/v1/regime/current`
      const refused = await mcp.readResource({ uri: unknown }).catch((error: unknown) => String(error))
      expect(refused).to.contain(`Unknown resource: ${unknown}`)
      const { prompts } = await mcp.listPrompts()
      expect(prompts.map(({ name }) => name)).to.include.members(['regime', 'cost', 'audit'])
      const question = 'Should I trade bigger now?'
      const { messages } = await mcp.getPrompt({ name: 'regime', arguments: { question } })
      expect(messages).to.have.length(1)
      expect(messages[0]?.content)
        .to.have.property('text')
        .that.matches(/^Should I trade bigger now\?\n/)
      expect(messages[0]?.content).to.have.property('text').that.contains('- get_regime_current ($0.005): ')
      const missing = await mcp.getPrompt({ name: 'gold' }).catch((error: unknown) => String(error))
      expect(missing).to.contain('Unknown prompt: gold')
      await mcp.close()
    }
  })

  it('is told over MCP, with the price, what is wrong with its arguments', async () => {
    const mcp = new Client({ name: 'buyer', version: '1.0.0' })
    await mcp.connect(new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`)))
    await mcp.listTools()
    const { structuredContent } = await mcp.callTool({ name: 'estimate_execution_cost', arguments: { side: 'up' } })
    await mcp.close()
    const { x402Version, message, detail } = structuredContent as {
      x402Version: number
      message: string
      detail: { loc: string[] }[]
    }
    expect(x402Version).to.equal(2)
    expect(message).to.match(/^Correct the arguments before you pay: /)
    expect(detail.map(({ loc }) => loc.join('.'))).to.include.members(['arguments.symbol', 'arguments.side'])
  })

  it('gets the stored answer over MCP, without a second charge, for a payment it used over HTTP', async () => {
    const offer = await fetch(route)
    const { accepts } = JSON.parse(Buffer.from(offer.headers.get('payment-required') ?? '', 'base64').toString()) as {
      accepts: never[]
    }
    const header = await signPayment({ account: shop.buyer, requirement: accepts[0] as never, version: 2 })
    const overHttp = await json(await fetch(route, { headers: { 'payment-signature': header } }))
    await shop.moved()
    const mcp = new Client({ name: 'buyer', version: '1.0.0' })
    await mcp.connect(new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`)))
    const overMcp = await mcp.callTool({ name: 'get_regime_current', arguments: { payment_signature: header } })
    await mcp.close()
    expect(overMcp.structuredContent).to.deep.equal(overHttp)
    expect(await shop.moved()).to.deep.equal({ buyer: 0n, payee: 0n })
  })
})
