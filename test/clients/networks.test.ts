import { ExactEvmScheme } from '@x402/evm/exact/client'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { expect } from 'chai'
import { NETWORKS } from '../../gateway/config/networks.ts'
import { ask, json, offer, receipt, send } from '../support/agent.ts'
import { until } from '../support/gateway.ts'
import { newNonce, type Requirement, signPayment } from '../support/wallet.ts'
import { type Name, openTwoChainGateway, OPERATOR_TOKEN, type TwoChainGateway } from './networks.ts'

const PRICE = 5000n
const NAMES = ['base', 'base-sepolia'] as const
const NOTHING = { base: 0n, 'base-sepolia': 0n }

describe('a gateway on two chains', function () {
  this.timeout(120_000)
  let shop: TwoChainGateway
  let route: string
  let count = 0

  /** The payment requirement of each chain, as the 402 offers it. */
  const offers = async (): Promise<Record<Name, Requirement>> => {
    const { accepts } = (await offer(route)).v2
    const on = (name: Name) => accepts.find(({ network }) => network === NETWORKS[name].caip2) as unknown as Requirement
    return { base: on('base'), 'base-sepolia': on('base-sepolia') }
  }

  before(async function () {
    shop = await openTwoChainGateway(this)
  })
  beforeEach(() => {
    route = `${shop.url}/v1/echo/${'a'.repeat(++count)}`
  })
  after(() => shop?.close())

  it('asks the same price on each chain, with its own payee, and leaves out a network that it cannot settle on', async () => {
    const { v1, v2 } = await offer(route)
    const terms = ({ network, amount, payTo, asset, extra }: Record<string, unknown>) => ({
      network,
      amount,
      payTo,
      asset,
      extra,
    })
    expect(v2.accepts.map(terms)).to.deep.equal(
      NAMES.map((name) => ({
        network: NETWORKS[name].caip2,
        amount: '5000',
        payTo: shop.payees[name],
        asset: NETWORKS[name].asset,
        extra: NETWORKS[name].domain,
      })),
    )
    expect(v1.accepts.map(({ network, maxAmountRequired }) => [network, maxAmountRequired])).to.deep.equal([
      ['base', '5000'],
      ['base-sepolia', '5000'],
    ])
    const health = await json(await fetch(`${shop.url}/health`))
    expect(health).to.include({ status: 'degraded', network: 'base' })
    expect(health['settler']).to.include({ ready: true }).and.have.property('reason').that.includes('arbitrum')
    expect((health['settlers'] as { ready: boolean }[]).map(({ ready }) => ready)).to.deep.equal([true, true, false])
  })

  it('offers a route only on the networks that it accepts, and refuses payments on others', async () => {
    const { v2 } = await offer(`${shop.url}/v1/narrow`)
    expect(v2.accepts.map(({ network }) => network)).to.deep.equal(['eip155:84532'])
    const { base } = await offers()
    const requirement = { ...base, amount: '10000' }
    const answer = await send(
      `${shop.url}/v1/narrow`,
      await signPayment({ account: shop.buyer, requirement, version: 2 }),
    )
    expect(await json(answer)).to.include({ code: 'payment_invalid', error: 'invalid_network' })
  })

  for (const name of NAMES) {
    it(`is paid on ${name} through @x402/fetch, and the money is transferred there`, async () => {
      await shop.received()
      const client = new x402Client().register(NETWORKS[name].caip2, new ExactEvmScheme(shop.buyer))
      const response = await wrapFetchWithPayment(fetch, client)(route)
      expect(response.status).to.equal(200)
      expect(receipt(response)).to.include({ success: true, network: NETWORKS[name].caip2 })
      expect(await shop.received()).to.deep.equal({ ...NOTHING, [name]: PRICE })
    })

    it(`is paid on ${name} through @x402/fetch with x402 version 1`, async () => {
      const client = new x402Client().registerV1(name, new ExactEvmSchemeV1(shop.buyer))
      const response = await wrapFetchWithPayment(onlyV1, client)(route)
      expect(response.status).to.equal(200)
      expect(receipt(response, 'x-payment-response')).to.include({ success: true, network: name })
      expect(await shop.received()).to.deep.equal({ ...NOTHING, [name]: PRICE })
    })
  }

  it('refuses a payment that was signed for one chain on the other', async () => {
    const requirements = await offers()
    const { extra, asset, network } = requirements.base
    const forBase = { ...requirements['base-sepolia'], extra, asset, network }
    const header = await signPayment({ account: shop.buyer, requirement: forBase, version: 2 })
    const payment = JSON.parse(Buffer.from(header, 'base64').toString()) as { accepted: object }
    const claimed = { ...payment, accepted: requirements['base-sepolia'] }
    const answer = await send(route, Buffer.from(JSON.stringify(claimed)).toString('base64'))
    expect(answer.status).to.equal(402)
    expect(await json(answer)).to.include({
      code: 'payment_invalid',
      error: 'invalid_exact_evm_payload_signature',
    })
    expect(await shop.received()).to.deep.equal(NOTHING)
  })

  it('treats the same nonce on each chain as a separate payment', async () => {
    const requirements = await offers()
    const signed = { nonce: newNonce() }
    const pay = async (name: Name) => {
      const header = await signPayment({ account: shop.buyer, requirement: requirements[name], version: 2, signed })
      return send(route, header)
    }
    const answers = [await pay('base'), await pay('base-sepolia')]
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200])
    expect(answers.map((answer) => answer.headers.get('idempotent-replay'))).to.deep.equal([null, null])
    expect(new Set(answers.map((answer) => receipt(answer)['transaction'])).size).to.equal(2)
    expect(await shop.received()).to.deep.equal({ base: PRICE, 'base-sepolia': PRICE })
    const rows = await shop.gateway.journal.list({ payer: shop.buyer.address, limit: 100 })
    const sameNonce = rows.filter(({ identity }) => identity === signed.nonce)
    expect(sameNonce.map(({ network }) => network)).to.have.members(['eip155:84532', 'eip155:8453'])
  })

  it('names all its networks in every document', async () => {
    const text = async (path: string): Promise<string> => (await fetch(shop.url + path)).text()
    for (const path of ['/pricing.json', '/.well-known/x402', '/llms.txt', '/openapi.json'])
      expect(await text(path), path)
        .to.include(shop.payees.base)
        .and.include(shop.payees['base-sepolia'])
    const prices = JSON.parse(await text('/pricing.json')) as { network: string; networks: { network: string }[] }
    expect(prices.network).to.equal('base')
    expect(prices.networks.map(({ network }) => network)).to.deep.equal(['base', 'base-sepolia', 'arbitrum'])
    const tools = await ask(`${shop.url}/mcp`, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    })
    expect(await tools.text()).to.include('USDC on base or base-sepolia or arbitrum via x402')
  })

  it('shows every network it offers on the page of a 402', async () => {
    const page = await ask(route, { headers: { accept: 'text/html' } })
    expect(page.status).to.equal(402)
    expect(await page.text())
      .to.include('USDC on base or base-sepolia')
      .and.include(shop.payees.base)
      .and.include(shop.payees['base-sepolia'])
  })

  it('compares the journal with each chain, and reports that the third cannot be read', async () => {
    // Blocks of a public chain are only read at some depth.
    for (const chain of Object.values(shop.chains)) await chain.rpc.call('anvil_mine', '0x20')
    await until(async () => (await shop.gateway.journal.counts()).submitted === 0, 200)
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, origin: shop.url }
    const response = await ask(`${shop.url}/operator/reconciliation/run`, { method: 'POST', headers })
    const { comparison } = (await json(response)) as {
      comparison: { buckets: Record<string, number>; unreadable: string }
    }
    expect(comparison.unreadable).to.be.a('string')
    const settled = await shop.gateway.journal.list({ states: ['settled'], limit: 100 })
    expect(new Set(settled.map(({ network }) => network)).size).to.equal(2)
    expect(comparison.buckets).to.deep.equal({
      matched: settled.length,
      pending: 0,
      missing: 0,
      amount_differs: 0,
      unknown: 0,
      unreadable: 1,
    })
  })

  it('keeps selling on one chain while the other is down, and offers only what it can settle', async () => {
    const requirements = await offers()
    await shop.proxies['base-sepolia'].down()
    const pay = async (name: Name) =>
      send(route, await signPayment({ account: shop.buyer, requirement: requirements[name], version: 2 }))
    const refused = await pay('base-sepolia')
    expect(refused.status).to.equal(503)
    expect(await json(refused)).to.include({ code: 'settler_unavailable' })
    let offered = await offers()
    await until(async () => {
      offered = await offers()
      return !offered['base-sepolia']
    })
    expect(offered.base).to.be.an('object')
    expect((await pay('base')).status).to.equal(200)
    expect(await shop.received()).to.deep.equal({ ...NOTHING, base: PRICE })

    await shop.proxies.base.down()
    expect((await pay('base')).status).to.equal(503)
    const health = async () => (await json(await fetch(`${shop.url}/health`))) as { settler: { ready: boolean } }
    await until(async () => !(await health()).settler.ready)
    const { response, v2 } = await offer(route)
    expect(response.status).to.equal(402)
    expect(v2.accepts).to.have.length(3)
    await shop.proxies.base.up()
    await shop.proxies['base-sepolia'].up()
  })
})

/** Without the v2 header the client reads the v1 body and sends X-PAYMENT. */
const onlyV1: typeof fetch = async (input, init) => {
  const response = await fetch(input, init)
  if (response.status !== 402) return response
  const headers = new Headers(response.headers)
  headers.delete('payment-required')
  return new Response(response.body, { status: 402, headers })
}
