/** A settled payment is public: what somebody gets who read it from the chain and presents it again. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { expect } from 'chai'
import { json, payment, send } from '../../support/agent.ts'
import { freePort, openGateway, type TestGateway } from '../../support/gateway.ts'

describe('a payment that somebody else presents again', function () {
  this.timeout(30_000)
  let dataDir: string
  let shop: TestGateway
  let environment: Record<string, string>
  before(async () => {
    dataDir = mkdtempSync(`${tmpdir()}/tollgate-observed-`)
    environment = { DATA_DIR: dataDir, PORT: String(await freePort()) }
    shop = await openGateway(environment, { inMemory: false })
  })
  after(async () => {
    await shop.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  // A proxy on this machine says where the caller is.
  const from = (address: string, method = 'GET') => ({ method, headers: { 'x-forwarded-for': address } })
  const pass = (header: string, address: string): Promise<Response> =>
    send(`${shop.url}/v1/passes/late/1h`, header, 2, from(address, 'POST'))

  it('is given the token again where it was bought from, and nowhere else, after a restart too', async () => {
    const header = await payment(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    const bought = await pass(header, '203.0.113.7')
    const { token } = await json(bought)
    expect(token).to.be.a('string')
    const refused = async (): Promise<void> => {
      const response = await pass(header, '203.0.113.8')
      const text = await response.text()
      expect(response.status).to.equal(403)
      expect(JSON.parse(text)).to.include({ code: 'forbidden', retry: 'never' })
      expect(text).to.include('Do not pay again').and.not.to.include('eyJ')
      expect(JSON.stringify([...response.headers])).not.to.match(/eyJ|bought-from/)
    }
    await refused()
    const again = await pass(header, '203.0.113.7')
    expect(again.headers.get('idempotent-replay')).to.equal('true')
    expect((await json(again))['token']).to.equal(token)
    for (const response of [bought, again]) expect(response.headers.has('x-bought-from')).to.equal(false)
    await shop.close()
    shop = await openGateway(environment, { inMemory: false })
    await refused()
    expect((await json(await pass(header, '203.0.113.7')))['token']).to.equal(token)
  })

  it('is one place for a whole /64, as one customer has', async () => {
    const header = await payment(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    expect((await pass(header, '2001:db8:1:2::7')).status).to.equal(200)
    expect((await pass(header, '2001:db8:1:2:ffff::9')).status).to.equal(200)
    expect((await pass(header, '2001:db8:1:3::7')).status).to.equal(403)
  })

  it('waits in vain while the buyer’s own call is under way', async () => {
    const header = await payment(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    const release = shop.settler.hold()
    const buyer = pass(header, '203.0.113.7')
    await new Promise((wake) => setTimeout(wake, 100))
    const others = [pass(header, '203.0.113.7'), pass(header, '203.0.113.8')]
    await new Promise((wake) => setTimeout(wake, 100))
    release()
    const statuses = (await Promise.all([buyer, ...others])).map(({ status }) => status)
    expect(statuses).to.deep.equal([200, 200, 403])
  })

  it('is given any other answer again, wherever it comes from', async () => {
    const url = `${shop.url}/v1/echo/hello`
    const header = await payment(url, shop.wallet)
    const first = await (await send(url, header, 2, from('203.0.113.7'))).text()
    const second = await send(url, header, 2, from('203.0.113.8'))
    expect([second.status, await second.text()]).to.deep.equal([200, first])
  })
})
