import { once } from 'node:events'
import { expect } from 'chai'
import { ask, buy, json, offer, payment, receipt, send } from '../support/agent.ts'
import { newWallet, nextRequest, openGateway, type TestGateway, until } from '../support/gateway.ts'
import { createPayment, signPayment } from '../support/wallet.ts'

describe('a payment', () => {
  let shop: TestGateway
  let url: string
  const runs = async (): Promise<Record<string, number>> =>
    (await json(await ask(`${url}/v1/runs`))) as Record<string, number>
  const states = async (key: string): Promise<string[]> =>
    (await shop.gateway.journal.events(key)).map((event) => event.state)
  beforeEach(async () => {
    shop = await openGateway()
    url = shop.url
  })
  afterEach(() => shop.close())

  describe('that is sent fifty times at once', () => {
    it('runs the handler once, settles once, and gives all callers the same answer', async () => {
      const header = await payment(`${url}/v1/echo/fifty`, shop.wallet)
      const responses = await Promise.all(Array.from({ length: 50 }, () => send(`${url}/v1/echo/fifty`, header)))
      const bodies = await Promise.all(responses.map((response) => response.text()))
      expect(new Set(responses.map((response) => response.status))).to.deep.equal(new Set([200]))
      expect(new Set(bodies).size).to.equal(1)
      expect(new Set(responses.map((response) => receipt(response)['transaction'])).size).to.equal(1)
      expect((await runs())['getEcho']).to.equal(1)
      expect(shop.settler.transfers).to.have.length(1)
    })

    it('runs a failing handler once and charges nobody', async () => {
      const sent = { method: 'POST', body: { text: 'a', fault: 'throw' } }
      const header = await payment(`${url}/v1/echo`, shop.wallet, 2, sent)
      const responses = await Promise.all(Array.from({ length: 50 }, () => send(`${url}/v1/echo`, header, 2, sent)))
      // A request that arrives after the first failure runs the handler again, until the circuit breaker opens.
      expect(responses.every((response) => [502, 503].includes(response.status))).to.equal(true)
      expect((await runs())['postEcho']).to.be.lessThan(6)
      expect(shop.settler.transfers).to.have.length(0)
    })
  })

  it('is refused with a 409 if another request uses it while it is in progress', async () => {
    const sent = { method: 'POST', body: { text: 'first', fault: 'gate' } }
    const header = await payment(`${url}/v1/echo`, shop.wallet, 2, sent)
    const first = send(`${url}/v1/echo`, header, 2, sent)
    await until(async () => (await runs())['postEcho'] === 1)
    const other = await send(`${url}/v1/echo`, header, 2, { method: 'POST', body: { text: 'second' } })
    expect(other.status).to.equal(409)
    await ask(`${url}/v1/gate`, { method: 'POST' })
    expect((await first).status).to.equal(200)
  })

  it('lets a waiting duplicate request continue if the first caller disconnects', async () => {
    const sent = { method: 'POST', body: { text: 'duplicate', fault: 'gate' } }
    const header = await payment(`${url}/v1/echo`, shop.wallet, 2, sent)
    const leaving = new AbortController()
    const firstArrived = nextRequest(shop)
    const first = send(`${url}/v1/echo`, header, 2, { ...sent, signal: leaving.signal }).catch(() => 'gone')
    const closed = once((await firstArrived).response, 'close')
    await until(async () => (await runs())['postEcho'] === 1)
    const duplicateArrived = nextRequest(shop)
    const duplicate = send(`${url}/v1/echo`, header, 2, sent)
    await duplicateArrived
    leaving.abort()
    expect(await first).to.equal('gone')
    await closed
    let response: Response | undefined
    void duplicate.then((arrived) => (response = arrived))
    // The duplicate may run the handler again, which waits at the gate once more.
    await until(async () => {
      await ask(`${url}/v1/gate`, { method: 'POST' })
      return response !== undefined
    })
    expect((await duplicate).status).to.equal(200)
    expect(shop.settler.transfers).to.have.length(1)
  })

  describe('whose settlement times out after it was broadcast', () => {
    it('is answered with 503 settlement_pending and the transaction, then delivered to the same payment, charged once', async () => {
      shop.settler.next('timeout')
      const header = await payment(`${url}/v1/echo/slow`, shop.wallet)
      const pending = await send(`${url}/v1/echo/slow`, header)
      expect(pending.status).to.equal(503)
      expect(pending.headers.get('retry-after')).to.match(/^\d+$/)
      expect(pending.headers.get('payment-required')).to.equal(null)
      expect(receipt(pending)).to.include({ success: false, errorReason: 'settlement_pending' })
      const body = await json(pending)
      expect(body).to.include({ code: 'settlement_pending', retry: 'same_payment' })
      expect(body['transaction']).to.match(/^0x[0-9a-f]{64}$/)

      const delivered = await send(`${url}/v1/echo/slow`, header)
      expect(delivered.status).to.equal(200)
      expect(receipt(delivered)).to.include({ success: true, transaction: body['transaction'] })
      expect((await runs())['getEcho']).to.equal(1)
      expect(shop.settler.transfers).to.have.length(1)
    })

    it('is finished by the recovery if the buyer never comes back', async () => {
      await shop.close()
      shop = await openGateway({}, { reconcileSeconds: 1 })
      url = shop.url
      shop.settler.next('timeout')
      await buy(`${url}/v1/echo/slow`, shop.wallet)
      shop.advance(60)
      const key = shop.settler.transfers[0]?.key as string
      await until(async () => (await states(key)).at(-1) === 'settled')
      expect(await states(key)).to.deep.equal(['reserved', 'submitted', 'settled'])
    })
  })

  it('keeps its reservation while the outcome is unknown, and is released once it has provably expired', async () => {
    shop.settler.next('lost')
    const header = await payment(`${url}/v1/echo/lost`, shop.wallet)
    for (let tries = 0; tries < 2; tries++) expect((await send(`${url}/v1/echo/lost`, header)).status).to.equal(503)
    shop.settler.expire()
    const { response, v1 } = await offer(`${url}/v1/echo/lost`, { headers: { 'payment-signature': header } })
    expect(response.status).to.equal(402)
    expect(v1.code).to.equal('settlement_failed')
    expect(shop.settler.transfers).to.have.length(0)
  })

  it('is never released if the process fails between sending and recording', async () => {
    shop.settler.next('late')
    const header = await payment(`${url}/v1/echo/late`, shop.wallet)
    expect((await send(`${url}/v1/echo/late`, header)).status).to.equal(503)
    const delivered = await send(`${url}/v1/echo/late`, header)
    expect(delivered.status).to.equal(200)
    expect(shop.settler.transfers).to.have.length(1)
  })

  it('gets the reason instead of an answer if it cannot be settled', async () => {
    shop.settler.next('revert')
    const header = await payment(`${url}/v1/echo/poor`, shop.wallet)
    const { response, v1 } = await offer(`${url}/v1/echo/poor`, { headers: { 'payment-signature': header } })
    expect(response.status).to.equal(402)
    expect(v1).to.include({ code: 'settlement_failed', error: 'insufficient_funds' })
    expect(v1).to.not.have.property('said')
    expect(receipt(response)).to.include({ success: false, errorReason: 'insufficient_funds' })
  })

  it('is not sent if it expires while its answer is produced', async () => {
    const sent = { method: 'POST', body: { text: 'slow', fault: 'gate' } }
    const header = await payment(`${url}/v1/echo`, shop.wallet, 2, sent)
    const call = send(`${url}/v1/echo`, header, 2, sent)
    await until(async () => (await runs())['postEcho'] === 1)
    shop.advance(299)
    await ask(`${url}/v1/gate`, { method: 'POST' })
    const response = await call
    expect(response.status).to.equal(402)
    expect(await json(response)).to.include({
      code: 'settlement_failed',
      error: 'invalid_exact_evm_payload_authorization_valid_before',
    })
    expect(shop.settler.calls).not.to.include('settle')
    expect(await shop.gateway.journal.counts()).to.include({ released: 1, settled: 0, submitted: 0 })
  })

  it('from an empty wallet is refused before any work is done', async () => {
    shop.settler.next('refuse')
    const header = await payment(`${url}/v1/echo/empty`, shop.wallet)
    const { response, v1 } = await offer(`${url}/v1/echo/empty`, { headers: { 'payment-signature': header } })
    expect(response.status).to.equal(402)
    expect(v1).to.include({ code: 'payment_invalid', error: 'insufficient_funds' })
    expect((await runs())['getEcho']).to.equal(0)
  })

  it('is not accepted while nothing can be settled, but the 402 is still served', async () => {
    const header = await payment(`${url}/v1/echo/down`, shop.wallet)
    shop.settler.down('no chain')
    const refused = await send(`${url}/v1/echo/down`, header)
    expect(refused.status).to.equal(503)
    expect(await json(refused)).to.include({ code: 'settler_unavailable' })
    expect((await ask(`${url}/v1/echo/down`)).status).to.equal(402)
    shop.settler.down(null)
    expect((await send(`${url}/v1/echo/down`, header)).status).to.equal(200)
  })

  it('waits until its validity begins, if the clock of the payer is some seconds ahead', async () => {
    const { v2 } = await offer(`${url}/v1/echo/early`)
    const early = async (seconds: number): Promise<Response> => {
      const validAfter = String(Math.floor(shop.now().getTime() / 1000) + seconds)
      const signed = { requirement: v2.accepts[0] as never, version: 2, signed: { validAfter } } as const
      return send(`${url}/v1/echo/early`, await signPayment({ account: shop.wallet, ...signed }))
    }
    const statuses = await Promise.all([early(0), early(1)].map(async (response) => (await response).status))
    expect(statuses).to.deep.equal([200, 200])
    for (const { createdAt, startsAt } of await shop.gateway.journal.list({ limit: 10 }))
      expect(Math.floor(createdAt / 1000)).to.be.greaterThan(Number(startsAt))
    const refused = await json(await early(60))
    expect(refused).to.include({ error: 'invalid_exact_evm_payload_authorization_valid_after' })
    expect(shop.settler.transfers).to.have.length(2)
  })

  it('is refused on a route other than the one its quote names, and accepted on that one', async () => {
    const quote = await offer(`${url}/v1/echo/route?times=2`)
    const { resource } = quote.v2
    const pay = async (named: object) => {
      const requirement = quote.v2.accepts[0] as never
      return signPayment({ account: shop.wallet, requirement, version: 2, envelope: { resource: named } })
    }
    const other = { url: resource.url.replace('/v1/echo/route', '/v1/late') }
    const refused = await send(`${url}/v1/echo/route?times=2`, await pay(other))
    expect(await json(refused)).to.include({ code: 'payment_invalid', error: 'invalid_payment_requirements' })
    expect(shop.settler.transfers).to.deep.equal([])
    for (const named of [resource, { url: 'https://proxy.example/elsewhere' }])
      expect((await send(`${url}/v1/echo/another?times=2`, await pay(named))).status).to.equal(200)
  })

  it('gets its answer again only if its signature is genuine', async () => {
    const { v2 } = await offer(`${url}/v1/echo/mine`)
    const requirement = v2.accepts[0] as never
    const paid = await createPayment({ account: shop.wallet, requirement, version: 2 })
    const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
    expect((await send(`${url}/v1/echo/mine`, encode(paid))).status).to.equal(200)
    const { payload } = paid as { payload: { authorization: Record<string, unknown> } }
    const ofAnotherWallet = await createPayment({ account: newWallet(), requirement, version: 2 })
    const stolen = {
      ...ofAnotherWallet,
      payload: { ...(ofAnotherWallet['payload'] as object), authorization: payload.authorization },
    }
    const refused = await send(`${url}/v1/echo/mine`, encode(stolen))
    expect(refused.status).to.equal(402)
    expect(await refused.text()).to.not.contain('said')
  })

  it('gets its stored answer before validation, price and anything else that may have changed', async () => {
    const header = await payment(`${url}/v1/echo/kept`, shop.wallet)
    const headers = { 'idempotency-key': 'order-2026-11-23-0001' }
    const first = await (await send(`${url}/v1/echo/kept`, header, 2, { headers })).text()
    shop.settler.down('no chain')
    shop.advance(86_000)
    expect(await (await send(`${url}/v1/echo/kept`, header, 2, { headers })).text()).to.equal(first)
  })

  it('is refused if one call carries two different payments', async () => {
    const [first, second] = [
      await payment(`${url}/v1/echo/two`, shop.wallet),
      await payment(`${url}/v1/echo/two`, shop.wallet, 1),
    ]
    const { response, v1 } = await offer(`${url}/v1/echo/two`, {
      headers: { 'payment-signature': first, 'x-payment': second },
    })
    expect(response.status).to.equal(402)
    expect(v1.code).to.equal('payment_invalid')
    expect(shop.settler.transfers).to.have.length(0)
  })
})
