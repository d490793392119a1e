import { expect } from 'chai'
import { openPages, type PageShop } from './shop.ts'

const PAGES = ['/', '/pricing', '/methodology', '/guard', '/strategies', '/docs', '/docs/getMore7']
const MORE = 80
const HEAVIEST = 150_000

describe('the pages of a service with many products', () => {
  let shop: PageShop
  before(async () => {
    shop = await openPages({ more: MORE })
  })
  after(() => shop.close())

  it('stay below 150 kB, including all they load', async () => {
    for (const path of PAGES) {
      const { status, html } = await shop.page(path)
      expect(status, path).to.equal(200)
      const parts = new Set([...html.matchAll(/"(\/assets\/[^"]+\.(?:css|js|woff2|svg))"/g)].map(([, part]) => part))
      const sizes = await Promise.all(
        [...parts].map(async (part) => (await (await fetch(shop.url + part)).arrayBuffer()).byteLength),
      )
      const all = sizes.reduce((sum, size) => sum + size, Buffer.byteLength(html))
      expect(all, path).to.be.below(HEAVIEST)
    }
  })

  it('list every product with its price and a link to its page', async () => {
    const { html: prices } = await shop.page('/pricing')
    const { html: index } = await shop.page('/docs')
    for (let more = 0; more < MORE; more += 1) {
      expect(prices).to.contain(`href="/docs/getMore${more}"`).and.to.contain(`Closing prices of market ${more}<`)
      expect(index).to.contain(`href="/docs/getMore${more}"`)
    }
    expect(prices.match(/\$0\.01</g)).to.have.lengthOf.at.least(MORE)
  })

  it('link to the documentation of a product that describes no method', async () => {
    const { html } = await shop.page('/methodology')
    expect(html).to.contain('href="/docs#product-more-7"')
    expect((await shop.page('/docs')).html).to.contain('id="product-more-7"')
  })
})
