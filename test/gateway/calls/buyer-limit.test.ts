import { expect } from 'chai'
import { ask, json, payment, receipt, send } from '../../support/agent.ts'
import { newWallet } from '../../support/gateway.ts'
import { type LimitedShop, openLimitedShop, SHARED_STORES } from '../../support/limited-shop.ts'

const LIMIT = { calls: 3, per: 'day', by: 'buyer' }

for (const stores of SHARED_STORES)
  describe(`the limit of a buyer at two processes that share ${stores}`, function () {
    this.timeout(60_000)
    let shop: LimitedShop
    before(async function () {
      const opened = await openLimitedShop(stores, {
        getEcho: { limit: LIMIT },
        postEcho: { limit: LIMIT },
        getLate: { limit: LIMIT },
      })
      if (!opened) return this.skip()
      shop = opened
    })
    after(() => shop?.close())

    it('admits as many calls of a wallet as the catalog says, and charges nothing for the others', async () => {
      const wallet = newWallet()
      const before = shop.transfers()
      const answers = await Promise.all(Array.from({ length: 8 }, (_, nth) => shop.pay(nth, '/v1/echo/hello', wallet)))
      const statuses = answers.map(({ status }) => status)
      expect(statuses).to.have.members([200, 200, 200, 429, 429, 429, 429, 429])
      expect(shop.transfers()).to.equal(before + 3)
      const refused = answers.find(({ status }) => status === 429) as Response
      expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 86_400)
      const body = await json(refused)
      expect(body).to.include({ code: 'rate_limited', retry: 'after_delay' })
      expect(body['message']).to.contain('nothing was charged')
    })

    it('is counted for each operation and each wallet', async () => {
      const [wallet, other] = [newWallet(), newWallet()]
      for (const nth of [0, 1, 2]) await shop.pay(nth, '/v1/echo/hello', wallet)
      expect((await shop.pay(0, '/v1/echo/hello', wallet)).status).to.equal(429)
      expect((await shop.pay(1, '/v1/late', wallet)).status).to.equal(200)
      expect((await shop.pay(1, '/v1/echo/hello', other)).status).to.equal(200)
    })

    it('gives a bought answer again as often as it is asked for', async () => {
      const wallet = newWallet()
      const named = { headers: { 'idempotency-key': 'limited-purchase-1' } }
      const header = await payment(shop.at(0, '/v1/echo/hello'), wallet, 2, {}, shop.now())
      for (const nth of [0, 1, 0, 1, 0])
        expect((await send(shop.at(nth, '/v1/echo/hello'), header, 2, named)).status).to.equal(200)
      for (const nth of [0, 1]) expect((await shop.pay(nth, '/v1/echo/hello', wallet)).status).to.equal(200)
      expect((await shop.pay(0, '/v1/echo/hello', wallet)).status).to.equal(429)
      expect((await send(shop.at(1, '/v1/echo/hello'), header, 2, named)).status).to.equal(200)
    })

    it('does not count what was not sold, and a refused payment can be used when the limit is renewed', async () => {
      const wallet = newWallet()
      const post = (body: object, nth: number) => shop.pay(nth, '/v1/echo', wallet, { method: 'POST', body })
      for (const nth of [0, 1]) {
        expect((await post({ text: 'a', fault: 'throw' }, nth)).status).to.equal(502)
        expect((await post({ text: 'a', fault: 'teapot' }, nth)).status).to.equal(418)
      }
      for (const nth of [0, 1, 2]) expect((await post({ text: 'a' }, nth)).status).to.equal(200)
      const header = await payment(shop.at(0, '/v1/echo'), wallet, 2, { method: 'POST' }, shop.now())
      const refused = await send(shop.at(0, '/v1/echo'), header, 2, { method: 'POST', body: { text: 'a' } })
      expect(refused.status).to.equal(429)
      expect(receipt.bind(null, refused)).to.throw()
    })

    it('counts the calls of an access token with those that its wallet pays for', async () => {
      const wallet = newWallet()
      const bought = await shop.pay(0, '/v1/passes/late/1h', wallet, { method: 'POST' })
      const { token } = (await bought.json()) as { token: string }
      const late = (nth: number) => ask(shop.at(nth, '/v1/late'), { headers: { 'x-service-token': token } })
      expect((await late(0)).status).to.equal(200)
      expect((await shop.pay(1, '/v1/late', wallet)).status).to.equal(200)
      expect((await late(1)).status).to.equal(200)
      const refused = await late(0)
      expect(refused.status).to.equal(429)
      expect(refused.headers.get('retry-after')).to.match(/^\d+$/)
    })

    it('is renewed with the next day', async () => {
      const wallet = newWallet()
      for (const nth of [0, 1, 2]) await shop.pay(nth, '/v1/late', wallet)
      expect((await shop.pay(0, '/v1/late', wallet)).status).to.equal(429)
      for (const { advance } of shop.processes) advance(86_400)
      expect((await shop.pay(1, '/v1/late', wallet)).status).to.equal(200)
    })
  })
