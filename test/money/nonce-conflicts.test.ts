import { once } from 'node:events'
import { expect } from 'chai'
import { json, offer, payment, send } from '../support/agent.ts'
import { newWallet, nextRequest, openGateway, type TestGateway, until } from '../support/gateway.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { newNonce, signPayment } from '../support/wallet.ts'

describe('one nonce signed for two prices', () => {
  let shop: TestGateway
  beforeEach(async () => (shop = await openGateway()))
  afterEach(() => shop.close())

  /** Signs a payment for the price of a route, with a given nonce. */
  async function sign(path: string, nonce: Hex, request = {}): Promise<string> {
    const { v2 } = await offer(`${shop.url}${path}`, request)
    const requirement = v2.accepts[0] as never
    return signPayment({ account: shop.wallet, requirement, version: 2, signed: { nonce } })
  }

  const other = { method: 'POST', body: { text: 'other' } }

  it('is refused with a 409 at once while the first is pending, without a look at the chain', async () => {
    const nonce = newNonce()
    shop.settler.next('lost')
    expect((await send(`${shop.url}/v1/echo/first`, await sign('/v1/echo/first', nonce))).status).to.equal(503)
    const header = await sign('/v1/echo', nonce, other)
    const before = shop.settler.calls.length
    const refused = await send(`${shop.url}/v1/echo`, header, 2, { ...other, signal: AbortSignal.timeout(10_000) })
    expect(refused.status).to.equal(409)
    expect(await json(refused)).to.include({ code: 'payment_conflict', retry: 'new_quote' })
    expect(shop.settler.calls.slice(before)).to.deep.equal([])
  })

  it('is refused with a 409 while the first is in progress, also at the route of the first', async () => {
    const nonce = newNonce()
    const gated = { method: 'POST', body: { text: 'first', fault: 'gate' } }
    const first = send(`${shop.url}/v1/echo`, await sign('/v1/echo', nonce, gated), 2, gated)
    await until(async () => (await shop.gateway.journal.openPayments()).length === 1)
    const header = await sign('/v1/echo/first', nonce)
    expect((await send(`${shop.url}/v1/echo/first`, header)).status).to.equal(409)
    expect((await send(`${shop.url}/v1/echo`, header, 2, gated)).status, 'the same request').to.equal(409)
    await fetch(`${shop.url}/v1/gate`, { method: 'POST' })
    expect((await first).status).to.equal(200)
  })

  it('still lets the first payment get its answer', async () => {
    const nonce = newNonce()
    shop.settler.next('timeout')
    const first = await sign('/v1/echo/first', nonce)
    expect((await send(`${shop.url}/v1/echo/first`, first)).status).to.equal(503)
    expect((await send(`${shop.url}/v1/echo`, await sign('/v1/echo', nonce, other), 2, other)).status).to.equal(409)
    expect((await send(`${shop.url}/v1/echo/first`, first)).status).to.equal(200)
    expect(shop.settler.transfers).to.have.length(1)
  })

  it('is refused as unsigned if the second signature is not the payer’s', async () => {
    const nonce = newNonce()
    shop.settler.next('lost')
    expect((await send(`${shop.url}/v1/echo/first`, await sign('/v1/echo/first', nonce))).status).to.equal(503)
    const { v2 } = await offer(`${shop.url}/v1/echo`, other)
    const signed = { nonce, from: shop.wallet.address }
    const forged = await signPayment({
      account: newWallet(),
      requirement: v2.accepts[0] as never,
      version: 2,
      signed,
    })
    const refused = await json(await send(`${shop.url}/v1/echo`, forged, 2, other))
    expect(refused).to.include({ code: 'payment_invalid', error: 'invalid_exact_evm_payload_signature' })
  })
})

describe('a payment that another process takes over again and again', () => {
  let shop: TestGateway
  let tries: number

  beforeEach(async () => {
    tries = 0
    shop = await openGateway(
      {},
      {
        journal: (journal) => ({
          ...journal,
          async reserve(reservation) {
            tries += 1
            const { record } = await journal.reserve(reservation)
            await journal.released(record.key, record.attempt, 'taken over')
            return { reserved: false, record, ahead: [] }
          },
        }),
      },
    )
  })
  afterEach(() => shop?.close())

  it('is answered 503 after a bounded number of tries', async () => {
    const header = await payment(`${shop.url}/v1/echo/busy`, shop.wallet)
    const refused = await send(`${shop.url}/v1/echo/busy`, header, 2, { signal: AbortSignal.timeout(20_000) })
    expect(refused.status).to.equal(503)
    expect(await json(refused)).to.include({ retry: 'same_payment' })
    expect(tries).to.be.greaterThan(1).and.lessThan(50)
  })

  it('is tried no more once its caller has left', async () => {
    const header = await payment(`${shop.url}/v1/echo/busy`, shop.wallet)
    const leaving = new AbortController()
    const arrived = nextRequest(shop)
    const call = send(`${shop.url}/v1/echo/busy`, header, 2, { signal: leaving.signal }).catch(() => 'gone')
    const closed = once((await arrived).response, 'close')
    await until(() => tries >= 2)
    leaving.abort()
    expect(await call).to.equal('gone')
    await closed
    const before = tries
    const other = await payment(`${shop.url}/v1/echo/later`, shop.wallet)
    await send(`${shop.url}/v1/echo/later`, other, 2, { signal: AbortSignal.timeout(20_000) })
    expect(tries, 'ten of the later payment').to.be.at.most(before + 11)
  })
})
