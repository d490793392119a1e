/** A settled payment is public. These tests present one again, as somebody could who read it from the chain. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { expect } from 'chai'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { paymentKey } from '../../../gateway/methods/payment-method.ts'
import { ask, json, payment, send } from '../../support/agent.ts'
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

  it('returns the access token only to the address it was bought from, also after a restart', async () => {
    const header = await payment(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    const bought = await buyPlan(header, '203.0.113.7')
    const { token } = await json(bought)
    expect(token).to.be.a('string')
    const refused = async (): Promise<void> => {
      const response = await buyPlan(header, '203.0.113.8')
      const text = await response.text()
      expect(response.status).to.equal(403)
      expect(JSON.parse(text)).to.include({ code: 'forbidden', retry: 'never' })
      expect(text).to.include('Do not pay again').and.not.to.include('eyJ')
      expect(JSON.stringify([...response.headers])).not.to.contain('eyJ')
    }
    await refused()
    const repeated = await buyPlan(header, '203.0.113.7')
    expect(repeated.headers.get('idempotent-replay')).to.equal('true')
    expect((await json(repeated))['token']).to.equal(token)
    await shop.close()
    shop = await openGateway(environment, { inMemory: false })
    await refused()
    expect((await json(await buyPlan(header, '203.0.113.7')))['token']).to.equal(token)
  })

  it('treats an IPv6 /64 as one address', async () => {
    const header = await payment(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    expect((await buyPlan(header, '2001:db8:1:2::7')).status).to.equal(200)
    expect((await buyPlan(header, '2001:db8:1:2:ffff::9')).status).to.equal(200)
    expect((await buyPlan(header, '2001:db8:1:3::7')).status).to.equal(403)
  })

  it('treats the IPv4 and IPv6 addresses of one machine as one address', async () => {
    for (const [boughtFrom, repeatedFrom] of [
      ['127.0.0.2', '::1'],
      ['203.0.113.7', '::ffff:203.0.113.7'],
    ] as const) {
      const header = await payment(`${shop.url}/v1/passes/late/1h`, newWallet(), 2, { method: 'POST' })
      expect((await buyPlan(header, boughtFrom)).status).to.equal(200)
      expect((await buyPlan(header, repeatedFrom)).status, repeatedFrom).to.equal(200)
      expect((await buyPlan(header, '203.0.113.8')).status).to.equal(403)
    }
  })

  it('tells buyers behind the same trusted proxy apart, and recognises a buyer behind another one', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    expect((await echo(header, '203.0.113.7, 198.51.100.1')).status).to.equal(200)
    expect((await echo(header, '203.0.113.8, 198.51.100.1')).status).to.equal(403)
    expect((await echo(header, '203.0.113.7, 198.51.100.2')).status).to.equal(200)
    expect((await echo(header, '203.0.113.7, 192.0.2.1')).status, 'a proxy nobody trusts').to.equal(403)
  })

  it('returns no token to another caller who waits while the buyer’s own call is in progress', async () => {
    const header = await payment(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    const settlement = holdSettlements()
    const buyer = buyPlan(header, '203.0.113.7')
    await settlement.reached()
    const others = await allArrived(2, () => [buyPlan(header, '203.0.113.7'), buyPlan(header, '203.0.113.8')])
    settlement.release()
    const statuses = (await Promise.all([buyer, ...others])).map(({ status }) => status)
    expect(statuses).to.deep.equal([200, 200, 403])
  })

  it('returns a delivered answer only to the address it was bought from, also after a restart', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    const from = (address: string) => echo(header, address)
    const first = await (await from('203.0.113.7')).text()
    const refused = async (): Promise<void> => {
      const response = await from('203.0.113.8')
      const body = await json(response)
      expect(response.status).to.equal(403)
      expect(body).to.include({ code: 'forbidden', retry: 'never' }).and.not.have.property('said')
      expect(response.headers.has('payment-response')).to.equal(false)
    }
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
    expect(statuses).to.deep.equal([200, 403, 403, 403, 403, 403, 403])
  })

  it('returns an answer that was never delivered to any address, since the buyer may have moved', async () => {
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
    shop.advance(11)
    const response = await echo(header, '203.0.113.8')
    expect([response.status, response.headers.get('idempotent-replay')]).to.deep.equal([200, 'true'])
    await response.text()
    await until(async () => (await shop.gateway.journal.find(keyOf(header)))?.deliveredAt !== null)
    expect((await echo(header, '203.0.113.9')).status).to.equal(403)
    expect(shop.settler.transfers.filter(({ key }) => key === keyOf(header))).to.have.length(1)
  })

  it('returns the answer of a named purchase to anyone who sends its idempotency key, and to nobody with another key', async () => {
    const name = { 'idempotency-key': 'order-2026-11-20-0042' }
    for (const path of ['/v1/echo/hello', '/v1/passes/late/1h'] as const) {
      const method = path.startsWith('/v1/passes') ? 'POST' : 'GET'
      const header = await payment(`${shop.url}${path}`, newWallet(), 2, { method })
      const present = (address: string, headers = {}): Promise<Response> =>
        send(`${shop.url}${path}`, header, 2, { method, headers: { 'x-forwarded-for': address, ...headers } })
      const bytes = await (await present('203.0.113.7', name)).text()
      for (const [address, headers] of [
        ['203.0.113.8', {}],
        ['203.0.113.7', { 'idempotency-key': 'order-2026-11-20-0043' }],
        ['203.0.113.8', { 'idempotency-key': 'order-2026-11-20-0043' }],
      ] as const) {
        const refused = await present(address, headers)
        expect(refused.status, path).to.equal(409)
        expect(await json(refused)).to.include({ code: 'idempotency_conflict', retry: 'same_payment' })
      }
      for (const [address, headers] of [
        ['203.0.113.8', name],
        ['203.0.113.7', {}],
      ] as const) {
        const repeated = await present(address, headers)
        expect([repeated.status, await repeated.text()], path).to.deep.equal([200, bytes])
      }
    }
  })

  it('accepts the idempotency key of a purchase over MCP too, in the header of the POST', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    const name = { 'idempotency-key': 'order-2026-11-20-0044' }
    const elsewhere = { 'x-forwarded-for': '203.0.113.8' }
    const bought = await send(`${shop.url}/v1/echo/hello`, header, 2, { headers: name })
    const params = { name: 'get_echo', arguments: { word: 'hello', payment_signature: header } }
    const call = async (headers: Record<string, string>) => {
      const accept = 'application/json, text/event-stream'
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      const response = await ask(`${shop.url}/mcp`, { method: 'POST', body, headers: { accept, ...headers } })
      const { result } = (await response.json()) as { result: { structuredContent: Record<string, unknown> } }
      return result.structuredContent
    }
    expect(await call(elsewhere)).to.include({ code: 'idempotency_conflict' })
    expect(await call({ ...elsewhere, ...name })).to.deep.equal(await json(bought))
  })

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
