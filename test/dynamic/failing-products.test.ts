import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { buy, json, offer, payment, send } from '../support/agent.ts'
import { TELLER, thing } from '../support/catalog.ts'
import { useBench } from './faulty-product.ts'
import { until } from './live-gateway.ts'

describe('a product that fails', () => {
  const bench = useBench()
  const transfers = (operation: string) =>
    bench.place.gateway.journal.list({
      limit: 100,
      operations: [operation],
      states: ['settled', 'submitted', 'answered'],
    })

  it('charges nothing if its handler throws', async () => {
    await bench.add(thing('throws'))
    const answer = await buy(`${bench.place.url}/v1/throws`, bench.place.wallet)
    expect(answer.status).to.equal(502)
    const body = await json(answer)
    expect(body).to.include({ code: 'product_failed', retry: 'after_delay' })
    expect(JSON.stringify(body)).not.to.contain('a detail nobody outside may read')
    expect(await transfers('getThing')).to.deep.equal([])
  })

  it('charges nothing if it hangs, and answers 504', async () => {
    await bench.add(thing('hangs', { timeout_seconds: 0.05 }))
    const answer = await buy(`${bench.place.url}/v1/hangs`, bench.place.wallet)
    expect(answer.status).to.equal(504)
    expect(await json(answer)).to.include({ code: 'product_timeout' })
    expect(await transfers('getThing')).to.deep.equal([])
  })

  it('charges nothing if its answer breaks its own schema', async () => {
    await bench.add(thing('wrong-answer'))
    const answer = await buy(`${bench.place.url}/v1/wrong-answer`, bench.place.wallet)
    expect([answer.status, (await json(answer))['code']]).to.deep.equal([502, 'product_failed'])
    expect(await transfers('getThing')).to.deep.equal([])
  })

  it('is paused after five failures: it answers 503 with Retry-After before any payment, until it has recovered', async () => {
    await bench.add(thing('throws'))
    const url = `${bench.place.url}/v1/throws`
    for (let count = 0; count < 5; count++) expect((await buy(url, bench.place.wallet)).status).to.equal(502)
    const calls = bench.place.settler.calls.length
    const resting = await send(url, await payment(url, bench.place.wallet))
    expect(resting.status).to.equal(503)
    expect(Number(resting.headers.get('retry-after'))).to.be.within(1, 60)
    expect(await json(resting)).to.include({ code: 'product_suspended' })
    expect(bench.place.settler.calls.slice(calls).filter((call) => call === 'settle').length).to.be.lessThan(20)
    expect((await offer(url)).response.status).to.equal(402)
    expect((await bench.place.json('/health'))['products']).to.deep.include({
      product: 'throws',
      status: 'suspended',
      reason: 'getThing failed five times in a row',
    })
    bench.place.advance(61)
    expect((await buy(url, bench.place.wallet)).status).to.equal(502)
    expect((await buy(url, bench.place.wallet)).status).to.equal(503)
    bench.place.advance(-61)
  })

  it('pauses the products that use it too: 503 before any payment, and both are named in /health', async () => {
    bench.place.catalog('teller.json', { ...TELLER, uses: ['getThing'] })
    bench.place.drop('teller')
    await bench.add(thing('throws'))
    await until(() => bench.place.gateway.current.bound.has('askFor'))
    bench.place.catalog('x/faulty.json', thing('throws-on-import'))
    bench.place.drop('throws-on-import')
    const url = `${bench.place.url}/v1/teller?operation=getThing`
    for (let count = 0; count < 5; count++) await buy(`${bench.place.url}/v1/throws`, bench.place.wallet)
    await until(() => bench.place.gateway.issues.length > 0)
    const refused = await send(url, await payment(url, bench.place.wallet))
    expect([refused.status, (await json(refused))['code']]).to.deep.equal([503, 'product_suspended'])
    bench.place.remove('catalog', 'teller.json')
  })

  it('goes on selling while its job fails, and the job is counted and repeated', async () => {
    await bench.add(thing('fails-at-work'))
    const jobs = async () => {
      const stats = (await bench.place.json('/v1/stats'))['products'] as Record<
        string,
        { jobs: { work: { failures: number } } }
      >
      return stats['fails-at-work']?.jobs.work.failures ?? 0
    }
    await until(async () => (await jobs()) > 1)
    expect((await buy(`${bench.place.url}/v1/fails-at-work`, bench.place.wallet)).status).to.equal(200)
    expect((await bench.place.json('/health'))['status']).to.equal('ok')
  })

  it('may be a plan that is switched off: it is not sold, and issued tokens stay valid', async () => {
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
      bench.place.catalog('plans.json', { path: '/v1/plans', plans: [{ ...plan, enabled }] })
      await until(() => bench.place.gateway.current.catalog.plans.plans[0]?.enabled === enabled)
    }
    await sell(true)
    const url = `${bench.place.url}/v1/plans/day`
    const sold = await send(url, await payment(url, bench.place.wallet, 2, { method: 'POST' }), 2, { method: 'POST' })
    const { token } = (await json(sold)) as { token: string }
    await sell(false)
    const header = await payment(url, bench.place.wallet, 2, { method: 'POST' })
    const refused = await send(url, header, 2, { method: 'POST' })
    expect([refused.status, (await json(refused))['code']]).to.deep.equal([503, 'product_suspended'])
    expect(await transfers('purchasePlanDay')).to.have.length(1)
    const opened = await fetch(`${bench.place.url}/v1/gold`, { headers: { 'x-service-token': token } })
    expect([opened.status, (await json(opened))['price']]).to.deep.equal([200, 1900])
    bench.place.remove('catalog', 'plans.json')
  })

  it('cannot see payments, tokens or keys', async () => {
    await bench.add(thing('spy', { response: { type: 'object' } }))
    const url = `${bench.place.url}/v1/spy`
    const header = await payment(url, bench.place.wallet)
    const answer = await send(url, header, 2, {
      headers: { cookie: 'session=s3cret-cookie', authorization: 'Bearer s3cret-bearer', 'x-api-key': 's3cret-key' },
    })
    const told = JSON.stringify(await json(answer))
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: { signature: string } }
    expect(told).to.contain(bench.place.wallet.address.toLowerCase())
    for (const secret of [header, payload.signature, payload.signature.slice(2, 40), 's3cret'])
      expect(told).not.to.contain(secret)
  })

  it('does not delay other calls if it runs behind an upstream and blocks there', async () => {
    const silent: Server = createServer(() => {})
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', () => done()))
    const { port } = silent.address() as AddressInfo
    const { plugin: _, ...document } = thing('blocks', { timeout_seconds: 2 })
    bench.place.catalog('x/faulty.json', {
      ...document,
      upstream: { url: `http://127.0.0.1:${port}/`, timeout_seconds: 0.3 },
    })
    await until(() => bench.place.gateway.current.bound.has('getThing'))
    const sold = bench.sales.length
    const answer = await buy(`${bench.place.url}/v1/blocks`, bench.place.wallet)
    expect([answer.status, (await json(answer))['code']]).to.deep.equal([504, 'product_timeout'])
    expect(bench.sales.length).to.be.greaterThan(sold + 2)
    await bench.remove()
    silent.closeAllConnections()
    silent.close()
  })
})
