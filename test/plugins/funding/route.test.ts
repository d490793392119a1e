import { expect } from 'chai'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { proves } from '../../requirements.ts'
import { buy, json, offer, payment, receipt, send } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'

const root = resolve(import.meta.dirname, '../../..')

describe('GET /v1/x/perp-funding-rates', () => {
  const folder = mkdtempSync(join(tmpdir(), 'funding-'))
  let shop: TestGateway
  let url: string
  before(async () => {
    for (const name of ['service.json', 'documents.json', 'x/perp-funding-rates.json'])
      cpSync(join(root, 'catalog', name), join(folder, name))
    shop = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
    url = `${shop.url}/v1/x/perp-funding-rates`
  })
  after(async () => {
    await shop.close()
    rmSync(folder, { recursive: true })
  })

  for (const version of [1, 2] as const)
    it(`costs 0.005 USD and can be paid with x402 v${version}`, async () => {
      proves('x-funding')
      const { response, v1 } = await offer(url)
      expect(response.status).to.equal(402)
      expect(v1.accepts[0]).to.include({ maxAmountRequired: '5000' })
      const paid = await buy(`${url}?symbol=BTC&sort=-apr`, shop.wallet, version)
      expect(paid.status).to.equal(200)
      expect(receipt(paid)).to.include({ success: true })
      const body = await json(paid)
      expect(body).to.include({ count: 8, data_mode: 'sample' })
    })

  it('refuses an invalid query without charging', async () => {
    const header = await payment(url, shop.wallet)
    const settled = shop.settler.transfers.length
    for (const query of ['limit=0', 'limit=1001', 'sort=rate', 'venue=ftx', 'min_abs_apr=-1', 'cursor=x', 'base=BTC']) {
      const response = await send(`${url}?${query}`, header)
      expect(response.status, query).to.equal(422)
      expect((await json(response))['code']).to.equal('validation_failed')
    }
    expect(shop.settler.transfers).to.have.length(settled)
  })

  it('does not sell a page without a rate', async () => {
    const settled = shop.settler.transfers.length
    for (const query of ['symbol=NOSUCHCOIN', 'min_abs_apr=1000']) {
      const response = await send(`${url}?${query}`, await payment(url, shop.wallet))
      expect([response.status, (await json(response))['code']], query).to.deep.equal([404, 'empty_not_sold'])
    }
    expect(shop.settler.transfers).to.have.length(settled)
  })

  it('sells the settled rates of a symbol that is held, and charges nothing for another', async () => {
    const history = `${url}/history`
    const sold = await buy(`${history}?symbol=BTC&limit=1`, shop.wallet, 2)
    expect([sold.status, (await json(sold))['count']]).to.deep.equal([200, 1])
    const settled = shop.settler.transfers.length
    const header = await payment(`${history}?symbol=BTC`, shop.wallet)
    for (const [query, status, code] of [
      ['symbol=NOSUCHCOIN', 404, 'not_found'],
      ['symbol=BTC&start=2020-01-01T00:00:00Z&end=2020-02-01T00:00:00Z', 404, 'not_held'],
      ['symbol=BTC&start=soon', 422, 'validation_failed'],
    ] as const) {
      const response = await send(`${history}?${query}`, header)
      expect([response.status, (await json(response))['code']], query).to.deep.equal([status, code])
    }
    expect(shop.settler.transfers).to.have.length(settled)
  })

  it('appears in the index of its family with its price', async () => {
    const family = await (await fetch(`${shop.url}/v1/x`)).text()
    expect(family).to.include('GET /v1/x/perp-funding-rates').and.to.include('0.005')
  })
})
