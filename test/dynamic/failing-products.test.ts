import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { buy, json, offer, payment, send } from '../support/agent.ts'
import { TELLER, thing } from '../support/catalog.ts'
import { useGoldShop } from './faulty-product.ts'
import { until } from '../support/until.ts'

describe('a product', () => {
  const shop = useGoldShop()
  const transfers = (operation: string) =>
    shop.live.gateway.journal.list({
      limit: 100,
      operations: [operation],
      states: ['settled', 'submitted', 'answered'],
    })

  it('that throws charges nothing, and its message stays inside', async () => {
    await shop.addProduct(thing('throws'))
    const answer = await buy(`${shop.live.url}/v1/throws`, shop.live.wallet)
    expect(answer.status).to.equal(502)
    const body = await json(answer)
    expect(body).to.include({ code: 'product_failed', retry: 'after_delay' })
    expect(JSON.stringify(body)).not.to.contain('a detail nobody outside may read')
    expect(await transfers('getThing')).to.deep.equal([])
  })

  it('that hangs charges nothing, and answers 504', async () => {
    await shop.addProduct(thing('hangs', { timeout_seconds: 0.05 }))
    const answer = await buy(`${shop.live.url}/v1/hangs`, shop.live.wallet)
    expect(answer.status).to.equal(504)
    expect(await json(answer)).to.include({ code: 'product_timeout' })
    expect(await transfers('getThing')).to.deep.equal([])
  })

  it('whose answer does not match its own schema charges nothing', async () => {
    await shop.addProduct(thing('wrong-answer'))
    const answer = await buy(`${shop.live.url}/v1/wrong-answer`, shop.live.wallet)
    expect([answer.status, (await json(answer))['code']]).to.deep.equal([502, 'product_failed'])
    expect(await transfers('getThing')).to.deep.equal([])
  })

  it('that fails five times in a row is paused: it answers 503 with Retry-After before any payment, until it recovers', async () => {
    await shop.addProduct(thing('throws'))
    const url = `${shop.live.url}/v1/throws`
    for (let count = 0; count < 5; count++) expect((await buy(url, shop.live.wallet)).status).to.equal(502)
    const calls = shop.live.settler.calls.length
    const paused = await send(url, await payment(url, shop.live.wallet))
    expect(paused.status).to.equal(503)
    expect(Number(paused.headers.get('retry-after'))).to.be.within(1, 60)
    expect(await json(paused)).to.include({ code: 'product_suspended' })
    expect(shop.live.settler.calls.slice(calls).filter((call) => call === 'settle').length).to.be.lessThan(20)
    expect((await offer(url)).response.status).to.equal(402)
    expect((await shop.live.json('/health'))['products']).to.deep.include({
      product: 'throws',
      status: 'suspended',
      reason: 'getThing failed five times in a row',
    })
    shop.live.advance(61)
    expect((await buy(url, shop.live.wallet)).status).to.equal(502)
    expect((await buy(url, shop.live.wallet)).status).to.equal(503)
    shop.live.advance(-61)
  })

  it('that uses a failing product is paused too, and answers 503 before any payment', async () => {
    shop.live.writeCatalog('teller.json', { ...TELLER, uses: ['getThing'] })
    shop.live.copyPlugin('teller')
    await shop.addProduct(thing('throws'))
    await until(() => shop.live.gateway.current.bound.has('askFor'))
    shop.live.writeCatalog('x/faulty.json', thing('throws-on-import'))
    shop.live.copyPlugin('throws-on-import')
    const url = `${shop.live.url}/v1/teller?operation=getThing`
    for (let count = 0; count < 5; count++) await buy(`${shop.live.url}/v1/throws`, shop.live.wallet)
    await until(() => shop.live.gateway.issues.length > 0)
    const refused = await send(url, await payment(url, shop.live.wallet))
    expect([refused.status, (await json(refused))['code']]).to.deep.equal([503, 'product_suspended'])
    shop.live.remove('catalog', 'teller.json')
  })

  it('whose job fails keeps selling, and the failures are counted and the job is repeated', async () => {
    await shop.addProduct(thing('fails-at-work'))
    const jobs = async () => {
      const stats = (await shop.live.json('/v1/stats'))['products'] as Record<
        string,
        { jobs: { work: { failures: number } } }
      >
      return stats['fails-at-work']?.jobs.work.failures ?? 0
    }
    await until(async () => (await jobs()) > 1)
    expect((await buy(`${shop.live.url}/v1/fails-at-work`, shop.live.wallet)).status).to.equal(200)
    expect((await shop.live.json('/health'))['status']).to.equal('ok')
  })

  it('that is a plan is no longer sold when it is switched off, and tokens already issued stay valid', async () => {
    const plan = {
      plan: 'day',
      label: 'A day',
      tier: 'live',
      max_freshness_seconds: 0,
      duration_seconds: 86_400,
      route: 'POST /v1/plans/day',
      price: '1',
      authorizes: ['getGold'],
    }
    const sell = async (enabled: boolean): Promise<void> => {
      shop.live.writeCatalog('plans.json', { path: '/v1/plans', plans: [{ ...plan, enabled }] })
      await until(() => shop.live.gateway.current.catalog.plans.plans[0]?.enabled === enabled)
    }
    await sell(true)
    const url = `${shop.live.url}/v1/plans/day`
    const sold = await send(url, await payment(url, shop.live.wallet, 2, { method: 'POST' }), 2, { method: 'POST' })
    const { token } = (await json(sold)) as { token: string }
    await sell(false)
    const header = await payment(url, shop.live.wallet, 2, { method: 'POST' })
    const refused = await send(url, header, 2, { method: 'POST' })
    expect([refused.status, (await json(refused))['code']]).to.deep.equal([503, 'product_suspended'])
    expect(await transfers('purchasePlanDay')).to.have.length(1)
    const opened = await fetch(`${shop.live.url}/v1/gold`, { headers: { 'x-service-token': token } })
    expect([opened.status, (await json(opened))['price']]).to.deep.equal([200, 1900])
    shop.live.remove('catalog', 'plans.json')
  })

  it('cannot see payments, tokens or keys', async () => {
    await shop.addProduct(thing('spy', { response: { type: 'object' } }))
    const url = `${shop.live.url}/v1/spy`
    const header = await payment(url, shop.live.wallet)
    const answer = await send(url, header, 2, {
      headers: { cookie: 'session=s3cret-cookie', authorization: 'Bearer s3cret-bearer', 'x-api-key': 's3cret-key' },
    })
    const seen = JSON.stringify(await json(answer))
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: { signature: string } }
    expect(seen).to.contain(shop.live.wallet.address.toLowerCase())
    for (const secret of [header, payload.signature, payload.signature.slice(2, 40), 's3cret'])
      expect(seen).not.to.contain(secret)
  })

  it('that blocks behind an upstream does not delay other calls', async () => {
    const silent: Server = createServer(() => {})
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', () => done()))
    const { port } = silent.address() as AddressInfo
    const { plugin: _, ...document } = thing('blocks', { timeout_seconds: 2 })
    shop.live.writeCatalog('x/faulty.json', {
      ...document,
      upstream: { url: `http://127.0.0.1:${port}/`, timeout_seconds: 1 },
    })
    await until(() => shop.live.gateway.current.bound.has('getThing'))
    const sold = shop.sales.length
    const answer = await buy(`${shop.live.url}/v1/blocks`, shop.live.wallet)
    expect([answer.status, (await json(answer))['code']]).to.deep.equal([504, 'product_timeout'])
    expect(shop.sales.length).to.be.greaterThan(sold + 2)
    await shop.removeProduct()
    silent.closeAllConnections()
    silent.close()
  })
})
