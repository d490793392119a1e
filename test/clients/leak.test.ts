import { expect } from 'chai'
import { openGateway, type TestGateway } from '../support/gateway.ts'
import { resolve } from 'node:path'
import { json } from '../support/agent.ts'

const root = resolve(import.meta.dirname, '../..')

describe('what is sold', () => {
  let shop: TestGateway
  before(async function () {
    this.timeout(60_000)
    shop = await openGateway({ CATALOG_DIR: `${root}/catalog`, PLUGIN_DIRS: `${root}/plugins` })
    for (let tries = 0; tries < 200; tries++) {
      if ((await fetch(`${shop.url}/v1/regime/sample`)).status === 200) return
      await new Promise((wake) => setTimeout(wake, 250))
    }
  })
  after(() => shop.close())

  it('is not given away on a page: the start page shows the regime of 24 hours ago', async () => {
    const sample = await json(await fetch(`${shop.url}/v1/regime/sample`))
    const page = await (await fetch(`${shop.url}/`, { headers: { accept: 'text/html' } })).text()
    const day = String(sample['as_of']).slice(0, 10)
    expect(page).to.contain(day)
    expect(Date.parse(String(sample['as_of']))).to.be.at.most(shop.now().getTime() - 86_400_000)
    expect(page).to.not.contain(`at ${shop.now().toISOString().slice(0, 10)}`)
  })
})
