import { expect } from 'chai'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Directory } from '../../../schemas/types.d.ts'
import { proves } from '../../requirements.ts'
import { buy, json, offer, payment, receipt, send } from '../../support/agent.ts'
import { openGateway, PAY_TO, type TestGateway, until } from '../../support/gateway.ts'

const root = resolve(import.meta.dirname, '../../..')

describe('GET /v1/x/agent-economy-directory', () => {
  const folder = mkdtempSync(join(tmpdir(), 'directory-'))
  let gateway: TestGateway
  let url: string
  before(async () => {
    for (const name of [
      'service.json',
      'documents.json',
      'x/perp-funding-rates.json',
      'x/agent-economy-directory.json',
    ])
      cpSync(join(root, 'catalog', name), join(folder, name))
    gateway = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
    url = `${gateway.url}/v1/x/agent-economy-directory`
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  for (const version of [1, 2] as const)
    it(`costs 0.01 USD and can be paid with x402 v${version}`, async () => {
      proves('x-directory')
      const { response, v1 } = await offer(url)
      expect(response.status).to.equal(402)
      expect(v1.accepts[0]).to.include({ maxAmountRequired: '10000' })
      const paid = await buy(`${url}?protocol=x402&alive=true&limit=5`, gateway.wallet, version)
      expect(paid.status).to.equal(200)
      expect(receipt(paid)).to.include({ success: true })
      expect(await json(paid)).to.include({ count: 5, data_mode: 'sample' })
    })

  it('lists this service with the prices of its own documents', async () => {
    const ownListings = async () =>
      (await (await buy(`${url}?q=${new URL(gateway.url).host}`, gateway.wallet, 2)).json()) as Directory
    // The job that lists it starts with the gateway and needs some time.
    let found = await ownListings()
    await until(async () => (found = await ownListings()).total >= 3)
    const prices = Object.fromEntries(found.records.map((record) => [record.url, record.prices[0]]))
    expect(Object.keys(prices).toSorted()).to.deep.equal([
      `${gateway.url}/v1/x/agent-economy-directory`,
      `${gateway.url}/v1/x/perp-funding-rates`,
      `${gateway.url}/v1/x/perp-funding-rates/history`,
    ])
    expect(prices[url]).to.deep.include({
      network: 'eip155:84532',
      asset_symbol: 'USDC',
      amount_atomic: '10000',
      amount_usd: 0.01,
      pay_to: PAY_TO,
    })
    for (const record of found.records) {
      expect(record.flags).to.include('self')
      expect(record.provider.verified).to.equal(true)
      expect(record.liveness.status).to.equal('alive')
    }
  })

  it('refuses an invalid query without charging', async () => {
    const header = await payment(url, gateway.wallet)
    const transfers = gateway.settler.transfers.length
    for (const query of [
      'limit=0',
      'limit=201',
      'sort=calls',
      'protocol=grpc',
      'alive=maybe',
      'max_price_usd=-1',
      'cursor=x',
      'foo=1',
    ]) {
      const response = await send(`${url}?${query}`, header)
      expect(response.status, query).to.equal(422)
      expect((await json(response))['code']).to.equal('validation_failed')
    }
    expect(gateway.settler.transfers).to.have.length(transfers)
  })

  it('appears in the index of its family with its price', async () => {
    const family = await (await fetch(`${gateway.url}/v1/x`)).text()
    expect(family).to.include('GET /v1/x/agent-economy-directory').and.to.include('0.01')
  })
})
