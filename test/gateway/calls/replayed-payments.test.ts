/**
 * A settled payment is public. These tests present one again while it is in progress, across restarts and through proxies.
 * test/gateway/payments/replay-access.test.ts has the rules.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { createSIWxPayload, encodeSIWxHeader } from '@x402/extensions/sign-in-with-x'
import { expect } from 'chai'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { paymentKey } from '../../../gateway/methods/payment-method.ts'
import { json, payment, send } from '../../support/agent.ts'
import { freePort, newWallet, nextRequest, openGateway, type TestGateway, until } from '../../support/gateway.ts'
import type { Authorization } from '../../support/wallet.ts'

describe('a settled payment that is presented again', () => {
  let dataDir: string
  let shop: TestGateway
  let environment: Record<string, string>
  before(async () => {
    dataDir = mkdtempSync(`${tmpdir()}/tollgate-observed-`)
    environment = { DATA_DIR: dataDir, PORT: String(await freePort()), TRUSTED_PROXIES: '127.0.0.1 198.51.100.0/24' }
    shop = await openGateway(environment, { inMemory: false })
  })
  after(async () => {
    await shop.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  /** Holds the next settlements; `reached` waits until the first of them has begun. */
  function holdSettlements(): { release(): void; reached(): Promise<void> } {
    const count = (): number => shop.settler.calls.filter((call) => call === 'settle').length
    const before = count()
    return { release: shop.settler.hold(), reached: () => until(() => count() > before) }
  }
  /** Sends requests and waits until the gateway has received this many. */
  async function allArrived<Sent>(requests: number, sendAll: () => Sent): Promise<Sent> {
    let arrived = 0
    const onRequest = (): void => void (arrived += 1)
    shop.gateway.server.on('request', onRequest)
    const sent = sendAll()
    await until(() => arrived === requests)
    shop.gateway.server.off('request', onRequest)
    return sent
  }
  // A proxy on this machine reports the address of the caller.
  const from = (address: string, method = 'GET') => ({ method, headers: { 'x-forwarded-for': address } })
  const buyPlan = (header: string, address: string): Promise<Response> =>
    send(`${shop.url}/v1/passes/late/1h`, header, 2, from(address, 'POST'))

  const refusal = async (response: Response, secret: string): Promise<void> => {
    const text = await response.text()
    expect(response.status, text).to.equal(402)
    expect(JSON.parse(text)).to.include({ code: 'sign_in_required', retry: 'after_fix' })
    expect(text).to.include('Do not pay again').and.not.to.include(secret)
    expect(JSON.stringify([...response.headers])).not.to.contain(secret)
    expect(response.headers.has('payment-response')).to.equal(false)
  }

  it('returns no access token to a caller without a proof, also after a restart', async () => {
    const header = await payment(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    const bought = await buyPlan(header, '203.0.113.7')
    const { token } = await json(bought)
    expect(token).to.be.a('string')
    const refused = async (): Promise<void> => {
      await refusal(await buyPlan(header, '203.0.113.7'), String(token))
      await refusal(await buyPlan(header, '203.0.113.8'), String(token))
    }
    await refused()
    await shop.close()
    shop = await openGateway(environment, { inMemory: false })
    await refused()
  })

  it('treats the IPv4 and IPv6 addresses of one machine as one address', async () => {
    for (const [boughtFrom, repeatedFrom] of [
      ['127.0.0.2', '::1'],
      ['203.0.113.7', '::ffff:203.0.113.7'],
    ] as const) {
      const header = await payment(`${shop.url}/v1/echo/hello`, newWallet())
      expect((await echo(header, boughtFrom)).status).to.equal(200)
      expect((await echo(header, repeatedFrom)).status, repeatedFrom).to.equal(200)
      expect((await echo(header, '203.0.113.8')).status).to.equal(402)
    }
  })

  it('tells buyers behind the same trusted proxy apart, and recognises a buyer behind another one', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    expect((await echo(header, '203.0.113.7, 198.51.100.1')).status).to.equal(200)
    expect((await echo(header, '203.0.113.8, 198.51.100.1')).status).to.equal(402)
    expect((await echo(header, '203.0.113.7, 198.51.100.2')).status).to.equal(200)
    expect((await echo(header, '203.0.113.7, 192.0.2.1')).status, 'a proxy nobody trusts').to.equal(402)
  })

  it('returns no token to a caller without a proof who waits while the buyer’s own call is in progress', async () => {
    const header = await payment(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    const settlement = holdSettlements()
    const buyer = buyPlan(header, '203.0.113.7')
    await settlement.reached()
    const others = await allArrived(2, () => [buyPlan(header, '203.0.113.7'), buyPlan(header, '203.0.113.8')])
    settlement.release()
    const statuses = (await Promise.all([buyer, ...others])).map(({ status }) => status)
    expect(statuses).to.deep.equal([200, 402, 402])
  })

  it('returns a delivered answer only to the address it was bought from, also after a restart', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    const from = (address: string) => echo(header, address)
    const first = await (await from('203.0.113.7')).text()
    const refused = async (): Promise<void> => refusal(await from('203.0.113.8'), '"said"')
    await refused()
    await shop.close()
    shop = await openGateway(environment, { inMemory: false })
    await refused()
    const repeated = await from('203.0.113.7')
    expect([repeated.status, await repeated.text()]).to.deep.equal([200, first])
  })

  it('returns nothing to other callers during the buyer’s call or right after it', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    const settlement = holdSettlements()
    const buyer = echo(header, '203.0.113.7')
    await settlement.reached()
    const others = await allArrived(5, () => Array.from({ length: 5 }, () => echo(header, '203.0.113.8')))
    settlement.release()
    const rightAfter = buyer.then(() => echo(header, '203.0.113.9'))
    const statuses = (await Promise.all([buyer, rightAfter, ...others])).map(({ status }) => status)
    expect(statuses).to.deep.equal([200, 402, 402, 402, 402, 402, 402])
  })

  it('that failed on the chain, where others can read it, buys something for its buyer only', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    shop.settler.next('revert')
    expect((await echo(header, '203.0.113.7')).status).to.equal(402)
    const stolen = await send(`${shop.url}/v1/echo/other`, header, 2, from('203.0.113.8'))
    await refusal(stolen, '"said"')
    const signIn = { headers: { 'x-forwarded-for': '203.0.113.8', 'sign-in-with-x': await signedIn(header) } }
    expect((await send(`${shop.url}/v1/echo/other`, header, 2, signIn)).status).to.equal(200)
  })

  it('tells nobody with a forged payment of a contract wallet what was bought under an idempotency key', async () => {
    const url = `${shop.url}/v1/echo/hello`
    const headers = { 'idempotency-key': 'order-1' }
    expect((await send(url, await payment(url, shop.wallet), 2, { headers })).status).to.equal(200)
    const decoded = JSON.parse(Buffer.from(await payment(url, shop.wallet), 'base64').toString()) as {
      payload: { signature: string }
    }
    const payload = { ...decoded.payload, signature: `0x01${'ab'.repeat(65)}` }
    const forged = Buffer.from(JSON.stringify({ ...decoded, payload })).toString('base64')
    const refused = await send(url, forged, 2, { headers })
    expect(refused.status).to.equal(409)
    expect(await refused.text()).not.to.contain('/v1/echo')
  })

  it('returns an answer that was never delivered to the address that bought it, and counts a minute from then', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    const settlement = holdSettlements()
    const leaving = new AbortController()
    const arrived = nextRequest(shop)
    const abandoned = echo(header, '203.0.113.7', { signal: leaving.signal }).catch(() => 'gone')
    const closed = once((await arrived).response, 'close')
    await settlement.reached()
    leaving.abort()
    expect(await abandoned).to.equal('gone')
    await closed
    settlement.release()
    await until(async () => (await shop.gateway.journal.find(keyOf(header)))?.state === 'settled')
    shop.advance(3600)
    await refusal(await echo(header, '203.0.113.8'), '"said"')
    const response = await echo(header, '203.0.113.7')
    expect([response.status, response.headers.get('idempotent-replay')]).to.deep.equal([200, 'true'])
    await response.text()
    await until(async () => (await shop.gateway.journal.find(keyOf(header)))?.deliveredAt !== null)
    expect((await echo(header, '203.0.113.7')).status).to.equal(200)
    shop.advance(61)
    await refusal(await echo(header, '203.0.113.7'), '"said"')
    shop.advance(-3661)
    expect(shop.settler.transfers.filter(({ key }) => key === keyOf(header))).to.have.length(1)
  })

  /** Answers the challenge that a caller without a proof gets. */
  async function signedIn(header: string): Promise<string> {
    const refused = await send(`${shop.url}/v1/echo/hello`, header, 2, from('203.0.113.8'))
    const required = Buffer.from(refused.headers.get('payment-required') ?? '', 'base64').toString()
    const { extensions } = JSON.parse(required) as {
      extensions: { 'sign-in-with-x': { info: { uri: string }; supportedChains: object[] } }
    }
    const { info, supportedChains } = extensions['sign-in-with-x']
    const signed = { ...info, ...supportedChains[0] } as unknown as Parameters<typeof createSIWxPayload>[0]
    return encodeSIWxHeader(await createSIWxPayload(signed, shop.wallet, info.uri))
  }

  const echo = (header: string, address: string, sent: { signal?: AbortSignal } = {}): Promise<Response> =>
    send(`${shop.url}/v1/echo/hello`, header, 2, { ...from(address), ...sent })
})

function keyOf(header: string): string {
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    readonly payload: { readonly authorization: Authorization }
  }
  const { from, nonce } = payload.authorization
  return paymentKey(NETWORKS['base-sepolia'], from, nonce)
}
