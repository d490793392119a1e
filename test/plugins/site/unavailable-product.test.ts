import { expect } from 'chai'
import { openPagesGateway, type PagesGateway } from './pages-gateway.ts'

const PAGES = ['/', '/pricing', '/methodology', '/guard', '/strategies', '/docs']

describe('the pages while a product cannot answer', () => {
  let gateway: PagesGateway
  before(async () => {
    gateway = await openPagesGateway({ down: true })
  })
  after(() => gateway.close())

  it('say so and show everything else', async () => {
    for (const path of PAGES) expect((await gateway.page(path)).status, path).to.equal(200)
    expect((await gateway.page('/')).html).not.to.contain('24 hours ago')
    expect((await gateway.page('/methodology')).html).to.contain('currently unavailable')
  })
})
