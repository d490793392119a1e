import { expect } from 'chai'
import { openPages, type PageShop } from './shop.ts'

const PAGES = ['/', '/pricing', '/methodology', '/guard', '/strategies', '/docs']

describe('the pages while a product cannot answer', () => {
  let shop: PageShop
  before(async () => {
    shop = await openPages({ down: true })
  })
  after(() => shop.close())

  it('say so and show everything else', async () => {
    for (const path of PAGES) expect((await shop.page(path)).status, path).to.equal(200)
    expect((await shop.page('/')).html).not.to.contain('24 hours ago')
    expect((await shop.page('/methodology')).html).to.contain('currently unavailable')
  })
})
