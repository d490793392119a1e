import { expect } from 'chai'
import { openPagesGateway, type PagesGateway } from './pages-gateway.ts'

const PAGES = ['/', '/pricing', '/methodology', '/guard', '/strategies', '/docs', '/docs/getMore7']
const MORE = 80
const MAX_PAGE_BYTES = 150_000

describe('the pages of a service with many products', () => {
  let gateway: PagesGateway
  before(async () => {
    gateway = await openPagesGateway({ more: MORE })
  })
  after(() => gateway.close())

  it('stay below 150 kB, including all they load', async () => {
    for (const path of PAGES) {
      const { status, html } = await gateway.page(path)
      expect(status, path).to.equal(200)
      const parts = new Set([...html.matchAll(/"(\/assets\/[^"]+\.(?:css|js|woff2|svg))"/g)].map(([, part]) => part))
      const sizes = await Promise.all(
        [...parts].map(async (part) => (await (await fetch(gateway.url + part)).arrayBuffer()).byteLength),
      )
      const all = sizes.reduce((sum, size) => sum + size, Buffer.byteLength(html))
      expect(all, path).to.be.below(MAX_PAGE_BYTES)
    }
  })

  it('list every product with its price and a link to its page', async () => {
    const { html: prices } = await gateway.page('/pricing')
    const { html: index } = await gateway.page('/docs')
    for (let more = 0; more < MORE; more += 1) {
      expect(prices).to.contain(`href="/docs/getMore${more}"`).and.to.contain(`Closing prices of market ${more}<`)
      expect(index).to.contain(`href="/docs/getMore${more}"`)
    }
    expect(prices.match(/\$0\.01</g)).to.have.lengthOf.at.least(MORE)
  })

  it('link to the documentation of a product that describes no method', async () => {
    const { html } = await gateway.page('/methodology')
    expect(html).to.contain('href="/docs#product-more-7"')
    expect((await gateway.page('/docs')).html).to.contain('id="product-more-7"')
  })
})
