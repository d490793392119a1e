import { once } from 'node:events'
import { expect } from 'chai'
import { ask, buy, json, offer, payment, receipt, send } from '../../support/agent.ts'
import { newWallet, nextRequest, openGateway, PAY_TO, type TestGateway, until } from '../../support/gateway.ts'
import { proves } from '../../requirements.ts'

describe('a call', () => {
  let shop: TestGateway
  let url: string
  const runs = async (): Promise<Record<string, unknown>> => json(await ask(`${url}/v1/runs`))
  before(async () => {
    shop = await openGateway()
    url = shop.url
  })
  after(() => shop.close())

  describe('without a payment', () => {
    it('is answered with a 402 in both versions of x402, and runs no handler', async () => {
      proves('quote-402')
      const before = await runs()
      const { response, v1, v2 } = await offer(`${url}/v1/echo/hello`)
      expect(response.status).to.equal(402)
      expect(v1).to.deep.include({ x402Version: 1, code: 'payment_required', retry: 'new_quote' })
      expect(v1.accepts[0]).to.include({ network: 'base-sepolia', maxAmountRequired: '5000', payTo: PAY_TO })
      expect(v2).to.deep.include({ x402Version: 2 })
      expect(v2.accepts[0]).to.include({ network: 'eip155:84532', amount: '5000', payTo: PAY_TO })
      expect(v2.resource.url).to.equal(`${url}/v1/echo/hello`)
      expect(await runs()).to.deep.equal(before)
    })

    it('gets its 402 before its input is read, however invalid that is', async () => {
      const wrong = [`${url}/v1/echo/UPPER?times=99`, `${url}/v1/late?nonsense=1`]
      for (const address of wrong) expect((await ask(address)).status).to.equal(402)
      expect((await ask(`${url}/v1/echo`, { method: 'POST', body: { huge: 'x'.repeat(100_000) } })).status).to.equal(
        402,
      )
    })

    it('is answered without payment if the route is free', async () => {
      proves('free-needs-nothing')
      expect((await ask(`${url}/v1/runs`)).status).to.equal(200)
    })
  })

  describe('with a payment', () => {
    for (const version of [1, 2] as const)
      it(`is answered and settled in x402 version ${version}, with its receipt`, async () => {
        proves('pay-x-payment')
        const transfers = shop.settler.transfers.length
        const response = await buy(`${url}/v1/echo/hello?times=2`, shop.wallet, version)
        expect(response.status).to.equal(200)
        expect(await json(response)).to.include({ said: 'hello hello' })
        expect(receipt(response)).to.include({ success: true, payer: shop.wallet.address.toLowerCase() })
        if (version === 1) expect(receipt(response, 'x-payment-response')).to.include({ network: 'base-sepolia' })
        expect(shop.settler.transfers.length).to.equal(transfers + 1)
        expect(response.headers.get('cache-control')).to.contain('no-store')
      })

    it('gets a 422 for invalid input before any money moves', async () => {
      proves('invalid-422')
      const transfers = shop.settler.transfers.length
      const response = await buy(`${url}/v1/echo/hello?times=9`, shop.wallet)
      expect(response.status).to.equal(422)
      const { detail } = (await json(response)) as { detail: { loc: string[] }[] }
      expect(detail[0]?.loc).to.deep.equal(['query', 'times'])
      expect(shop.settler.transfers.length).to.equal(transfers)
    })

    it('may use the payment again if the first call was not charged', async () => {
      const header = await payment(`${url}/v1/echo`, shop.wallet, 2, { method: 'POST' })
      const failed = await send(`${url}/v1/echo`, header, 2, { method: 'POST', body: { text: 'a', fault: 'throw' } })
      expect(failed.status).to.equal(502)
      const answered = await send(`${url}/v1/echo`, header, 2, { method: 'POST', body: { text: 'b' } })
      expect(answered.status).to.equal(200)
    })

    it('moves through the states of the journal in order', async () => {
      const wallet = newWallet()
      await buy(`${url}/v1/echo/hello`, wallet)
      const key = [...shop.settler.transfers].at(-1)?.key as string
      const events = await shop.gateway.journal.events(key)
      expect(events.map((event) => event.state)).to.deep.equal(['reserved', 'submitted', 'settled'])
    })

    it('gets the stored answer and the same receipt when it is repeated', async () => {
      const header = await payment(`${url}/v1/echo/repeated`, shop.wallet)
      const first = await send(`${url}/v1/echo/repeated`, header)
      const second = await send(`${url}/v1/echo/repeated`, header)
      expect(await second.text()).to.equal(await first.text())
      expect(receipt(second)).to.deep.equal(receipt(first))
    })

    it('is answered with a 409 if the payment was used for another request', async () => {
      const header = await payment(`${url}/v1/echo/one`, shop.wallet)
      await send(`${url}/v1/echo/one`, header)
      for (const other of ['/v1/echo/two', '/v1/echo/one?times=2'])
        expect((await send(`${url}${other}`, header)).status).to.equal(409)
    })

    it('is refused with the reason if the payment is malformed, and charges nothing', async () => {
      const transfers = shop.settler.transfers.length
      for (const header of ['garbage', Buffer.from('{}').toString('base64'), Buffer.from('null').toString('base64')]) {
        const { response, v1 } = await offer(`${url}/v1/echo/hello`, { headers: { 'x-payment': header } })
        expect(response.status).to.equal(402)
        expect(v1.code).to.equal('payment_invalid')
        expect(v1.accepts).to.have.length(1)
      }
      expect(shop.settler.transfers.length).to.equal(transfers)
    })
  })

  describe('that fails', () => {
    const faults = { throw: 502, missing: 404, teapot: 418, hang: 504 } as const
    for (const [fault, status] of Object.entries(faults))
      it(`charges nothing if the handler answers ${status}`, async () => {
        const transfers = shop.settler.transfers.length
        const sent = { method: 'POST', body: { text: 'a', fault } }
        const response = await buy(`${url}/v1/echo`, newWallet(), 2, sent)
        expect(response.status).to.equal(status)
        expect(await response.text()).to.not.contain('secret')
        expect(shop.settler.transfers.length).to.equal(transfers)
      })

    it('charges nothing for an answer without a body', async () => {
      const transfers = shop.settler.transfers.length
      await buy(`${url}/v1/echo`, newWallet(), 2, { method: 'POST', body: { text: 'a', fault: 'empty' } })
      expect(shop.settler.transfers.length).to.equal(transfers)
    })

    it('charges nothing if the caller disconnects before the answer exists', async () => {
      const transfers = shop.settler.transfers.length
      const sent = { method: 'POST', body: { text: 'bye', fault: 'gate' } }
      const header = await payment(`${url}/v1/echo`, shop.wallet, 2, sent)
      const leaving = new AbortController()
      const before = await shop.gateway.journal.counts()
      const { postEcho } = await runs()
      const arrived = nextRequest(shop)
      const abandoned = send(`${url}/v1/echo`, header, 2, { ...sent, signal: leaving.signal }).catch(() => 'gone')
      const closed = once((await arrived).response, 'close')
      await until(async () => (await runs())['postEcho'] !== postEcho)
      leaving.abort()
      expect(await abandoned).to.equal('gone')
      await closed
      await ask(`${url}/v1/gate`, { method: 'POST' })
      await until(async () => (await shop.gateway.journal.counts()).released > before.released)
      expect(shop.settler.transfers.length).to.equal(transfers)
    })
  })

  describe('with HEAD or a conditional header', () => {
    it('runs no handler, charges nothing, and has the headers of the 402', async () => {
      const before = await runs()
      const header = await payment(`${url}/v1/echo/hello`, shop.wallet)
      const transfers = shop.settler.transfers.length
      const response = await ask(`${url}/v1/echo/hello`, { method: 'HEAD', headers: { 'payment-signature': header } })
      expect(response.status).to.equal(402)
      expect(response.headers.get('payment-required')).to.be.a('string')
      expect(await runs()).to.deep.equal(before)
      expect(shop.settler.transfers.length).to.equal(transfers)
    })

    it('is answered in full if it is paid, even if it names an ETag', async () => {
      const header = await payment(`${url}/v1/echo/hello`, shop.wallet)
      const response = await send(`${url}/v1/echo/hello`, header, 2, { headers: { 'if-none-match': '*' } })
      expect(response.status).to.equal(200)
    })
  })

  describe('of a retired route', () => {
    it('is answered with a 410 that names the replacement, and sells nothing', async () => {
      const response = await ask(`${url}/v1/gone`)
      expect(response.status).to.equal(410)
      expect(await json(response)).to.include({ code: 'retired', replacement: 'GET /v1/late' })
    })
  })
})
