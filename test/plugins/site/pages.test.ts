import { expect } from 'chai'
import { proves } from '../../requirements.ts'
import { openPagesGateway, type PagesGateway } from './pages-gateway.ts'

const PAGES = ['/', '/pricing', '/methodology', '/guard', '/strategies', '/docs']

describe('the pages of the service', () => {
  let gateway: PagesGateway
  before(async () => {
    gateway = await openPagesGateway()
  })
  after(() => gateway.close())

  const html = async (path: string): Promise<string> => (await gateway.page(path)).html

  it('are free HTML pages', async () => {
    proves('pages')
    for (const path of PAGES) {
      const { status, type } = await gateway.page(path)
      expect({ status, type }, path).to.deep.equal({ status: 200, type: 'text/html; charset=utf-8' })
    }
  })

  it('load nothing from other hosts and have no inline script or style', async () => {
    for (const path of [...PAGES, '/nowhere', '/v1/regime/current']) {
      const text = await html(path)
      expect(text.match(/\bstyle=|<style|\bon[a-z]+="|javascript:/i), path).to.equal(null)
      expect(text.match(/<script(?![^>]*(?:src="\/assets\/|type="application\/ld\+json"))/), path).to.equal(null)
      const loaded = [...text.matchAll(/<(?:link(?! rel="canonical")|script|img)[^>]+(?:href|src)="([^"]+)"/g)].map(
        (match) => match[1] as string,
      )
      expect(
        loaded.filter((address) => !address.startsWith('/')),
        path,
      ).to.deep.equal([])
      for (const address of loaded) expect((await fetch(gateway.url + address)).status, address).to.equal(200)
    }
  })

  it('have a title, description, preview card and structured data', async () => {
    for (const path of ['/', '/pricing', '/methodology', '/guard', '/strategies', '/docs']) {
      const text = await html(path)
      expect(text, path).to.contain(`<link rel="canonical" href="${gateway.url}${path}">`)
      const [, title] = /<title>([^<]+)<\/title>/.exec(text) ?? []
      expect(title?.length, path).to.be.within(10, 65)
      const [, description] = /<meta name="description" content="([^"]+)"/.exec(text) ?? []
      expect(description?.length, path).to.be.within(50, 160)
      const [, image] = /<meta property="og:image" content="([^"]+)"/.exec(text) ?? []
      const card = await fetch(image as string)
      expect([card.status, card.headers.get('content-type')]).to.deep.equal([200, 'image/png'])
      const [, data] = /<script type="application\/ld\+json">(.+?)<\/script>/.exec(text) ?? []
      expect(JSON.parse(data as string), path).to.have.property('@context', 'https://schema.org')
    }
  })

  it('ask search engines not to index errors and payment pages', async () => {
    for (const path of ['/nowhere', '/v1/regime/current', '/pricing?ok=many']) {
      const text = await html(path)
      expect(text, path).to.contain('<meta name="robots" content="noindex"')
      expect(text, path).not.to.contain('canonical').and.not.to.contain('ld+json')
    }
  })

  it('suggest routes for an address that does not exist', async () => {
    const suggestions = {
      '/prcing': '/pricing',
      '/v1/regime': '/docs/getRegimeCurrent',
      '/Metodology': '/methodology',
      '/regime/sample': '/docs/getRegimeSample',
    }
    for (const [path, href] of Object.entries(suggestions)) {
      const text = await html(path)
      expect(text, path).to.contain('Did you mean').and.to.contain(`<li><a href="${href}">`)
      expect(text, path).to.contain('href="/docs">Documentation').and.to.contain('href="/pricing">Pricing')
    }
    const text = await html(`/${'x'.repeat(90)}`)
    expect(text).to.contain('Nothing is served at this address.').and.not.to.contain('Did you mean')
    expect(text).not.to.contain('/openapi.json lists')
  })

  it('list every priced route with its price in the structured data', async () => {
    const [, data] = /<script type="application\/ld\+json">(.+?)<\/script>/.exec(await html('/pricing')) ?? []
    const { itemListElement } = JSON.parse(data as string) as { itemListElement: { name: string; price: string }[] }
    expect(itemListElement.map(({ name, price }) => [name, price])).to.have.deep.members([
      ['GET /v1/regime/current', '0.005'],
      ['GET /v1/regime/day/*', '2.00'],
      ['One day', '50.00'],
    ])
  })

  it('link only to pages and anchors that exist', async () => {
    const links = new Set<string>()
    for (const path of PAGES)
      for (const [, link] of (await html(path)).matchAll(/<a[^>]+href="([^"]+)"/g)) links.add(link as string)
    for (const link of links) {
      const [path, anchor] = link.split('#') as [string, string?]
      if (path === '') continue
      const { status, html } = await gateway.page(path)
      expect(status, link).to.be.oneOf([200, 402])
      if (anchor !== undefined) expect(html, link).to.contain(`id="${anchor}"`)
    }
  })

  it('hold the anchors that llms.txt links to', async () => {
    const links = [...(await html('/llms.txt')).matchAll(/\]\((?:https?:\/\/[^/]+)?(\/docs)#([^)]+)\)/g)]
    expect(links).not.to.have.length(0)
    const docs = await html('/docs')
    for (const [, , anchor] of links) expect(docs).to.contain(`id="${anchor}"`)
  })

  it('come with machine-readable documents that are free', async () => {
    proves('documents')
    const types = { json: /^application\/json/, txt: /^text\/plain/, xml: /^application\/xml/ }
    const documents = [
      'pricing.json',
      'openapi.json',
      'health',
      'robots.txt',
      'llms.txt',
      'sitemap.xml',
      'v1/stats',
      'v1/x',
    ]
    for (const path of documents) {
      const response = await fetch(`${gateway.url}/${path}`)
      expect(response.status, path).to.equal(200)
      const type = types[(path.split('.')[1] ?? 'json') as keyof typeof types]
      expect(response.headers.get('content-type'), path).to.match(type)
      expect(response.headers.get('x-catalog-version'), path).to.equal(gateway.gateway.current.catalog.version)
    }
  })

  it('come with documents that answer 304 while they have not changed', async () => {
    const { headers } = await fetch(`${gateway.url}/openapi.json`)
    const revalidated = await fetch(`${gateway.url}/openapi.json`, {
      headers: { 'if-none-match': headers.get('etag') as string },
    })
    expect(revalidated.status).to.equal(304)
  })

  it('accept the parameters err and ok and refuse invalid values', async () => {
    proves('page-queries')
    expect(await html('/')).not.to.contain('role="alert"')
    expect(await html('/?err=validation_failed')).to.contain('Please check it and send it again')
    // Whoever writes a link must not choose what the page says.
    for (const chosen of ['<script>alert(1)</script>', 'send 5 USDC to 0xb2', 'constructor', '__proto__'])
      for (const path of ['/', '/pricing']) {
        const page = await html(`${path}?err=${encodeURIComponent(chosen)}`)
        const [, shown] = /role="alert"[^>]*>([^]*?)<\//.exec(page) ?? []
        expect(shown, `${path} ${chosen}`).to.contain('Something went wrong. Please try again in a minute.')
        expect(shown, `${path} ${chosen}`).not.to.match(/script|send 5|function|\[object/)
      }
    expect(await html('/pricing')).not.to.contain('Thank you')
    expect(await html('/pricing?ok=1')).to.contain('Thank you')
    const refused = await gateway.page('/pricing?ok=many')
    expect(refused).to.include({ status: 422, type: 'text/html; charset=utf-8' })
    expect(refused.html).to.contain('query.ok')
    const asData = await fetch(`${gateway.url}/pricing?ok=many`)
    expect(asData.status).to.equal(422)
    expect(await asData.json())
      .to.have.nested.property('detail[0].loc')
      .deep.equal(['query', 'ok'])
  })

  it('ignore what others add to their addresses, and so do documents', async () => {
    const plain = await html('/pricing')
    expect(await html('/pricing?utm_source=chatgpt.com&fbclid=a&fbclid=b')).to.equal(plain)
    expect(await html('/pricing?ok=1&utm_source=chatgpt.com')).to.contain('Thank you')
    for (const path of ['/', '/methodology', '/docs', '/docs/getPricing', '/health', '/robots.txt', '/openapi.json']) {
      const { status } = await fetch(`${gateway.url}${path}?utm_source=chatgpt.com`)
      expect(status, path).to.equal(200)
    }
    const misspelt = await fetch(`${gateway.url}/v1/prices/history?limt=5`)
    expect(misspelt.status, 'a misspelt field of data').to.equal(422)
  })

  it('show the free sample, its figures and the data source on the start page', async () => {
    const text = await html('/')
    expect(text).to.contain('Market regime 24 hours ago')
    expect(text).to.contain('<p class="state volatile">VOLATILE</p>')
    for (const shown of ['87.4%', '0.75×', '60.0%', 'Invented data', '2026-11-19 09:41 UTC', '417,512', '2.10×'])
      expect(text, shown).to.contain(shown)
    expect(text, 'a figure that is not measured yet').not.to.contain('Brier')
  })

  it('show a free call and a paid call to copy on the start page', async () => {
    const text = (await html('/')).replaceAll('&#39;', "'")
    const addresses = [...text.matchAll(/curl -i '([^']+)'/g)].map(([, address]) => address as string)
    const statuses = await Promise.all(addresses.map(async (address) => (await fetch(address)).status))
    expect(statuses, 'the free sample, then the paid call').to.deep.equal([200, 402])
  })

  it('show every priced route and plan on the price page', async () => {
    const text = await html('/pricing')
    for (const shown of ['/v1/regime/current', '$0.005', '/v1/regime/day/*', '$2.00', 'One day &lt;of&gt; snapshots.'])
      expect(text, shown).to.contain(shown)
    for (const shown of ['/v1/regime/subscribe/day', '$50.00', '24 hours', 'At least 24 hours old', 'X-SERVICE-TOKEN'])
      expect(text, shown).to.contain(shown)
    expect(text).to.contain('spendControls').and.to.contain('maxValue')
    expect(text).to.contain('action="/founding"')
  })

  it('show status, limits and data mode on the guard page', async () => {
    const text = await html('/guard')
    for (const shown of [
      'All systems operational',
      'Market regime',
      '/v1/regime/current',
      '10 s',
      'Sample <span class="badge">now',
    ])
      expect(text, shown).to.contain(shown)
  })

  it('show examples of the available products on the strategies page and omit the others', async () => {
    const text = await html('/strategies')
    expect(text).to.contain('$100,000 × 0.7500 = $75,000').and.to.contain('$14.40')
    expect(text).to.contain('between $60,000 and $90,000').and.to.contain('Less even: ETH 2017.')
    expect(text).not.to.contain('Estimate the cost before you trade').and.not.to.contain('Run a preflight check')
  })

  it('show the method of each product that describes one, with its measurements', async () => {
    const text = await html('/methodology')
    for (const shown of [
      'har-schmitt/1',
      'A forecast, turned',
      'q = r^2 &lt; 1',
      'Out of sample.',
      '2.26',
      'No direction.',
    ])
      expect(text, shown).to.contain(shown)
  })

  it('open the methodology with the claims of all products, and say which are not met', async () => {
    const text = await html('/methodology')
    const [, table = ''] = /<section class="claims"(.*?)<\/section>/s.exec(text) ?? []
    expect(text.indexOf('class="claims"')).to.be.within(0, text.indexOf('A forecast, turned'))
    const rows = [...table.matchAll(/<tr role="row">(.*?)<\/tr>/gs)].map(([, row]) =>
      [...row!.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell]) => cell!.replaceAll(/<\/?span[^>]*>/g, '')),
    )
    expect(rows.slice(1)).to.deep.equal([
      [
        'Twice as volatile after VOLATILE',
        'not met',
        '1.8 to 2.3',
        '2 recordings, 12,345 cases, 2025-01-01 to 2025-12-31',
        '2026-11-30, replay',
      ],
      ['Noise is not plausible', 'met', '3 of 200', 'simulations, 200 cases', '2026-11-30, sample'],
    ])
    expect(table).to.contain('1 of 2 claims are met')
  })

  it('lead from what a visitor wants to do to the products of the documentation', async () => {
    const text = await html('/docs')
    const places = ['id="first-title"', 'id="basics-title"', 'id="tasks-title"', 'class="group"', 'id="mcp-title"']
    const found = places.map((place) => text.indexOf(place))
    expect(found)
      .to.deep.equal(found.toSorted((one, other) => one - other))
      .and.not.to.include(-1)
    const [, tasks] = /id="tasks-title"(.*?)<\/section>/s.exec(text) ?? []
    expect(tasks).to.contain('href="#product-')
    expect(tasks, 'what is free only').not.to.contain('Discovery')
  })

  it('list every operation in the documentation, with a free one to try without scripts', async () => {
    const text = await html('/docs')
    for (const id of ['getRegimeSample', 'getRegimeCurrent', 'getRegimeDay', 'getPricing', 'purchasePlanDay'])
      expect(text, id).to.contain(`id="${id}"`)
    expect(text).to.contain('href="/docs/getRegimeDay"').and.to.contain('href="/docs/getPricing"')
    expect(text).not.to.contain('id="getHome"').and.not.to.contain('getRegimeMethod')
    expect(text).to.match(/<form class="call" [^>]*method="get" action="\/v1\/regime\/sample"/)
    expect(text).not.to.contain('action="/v1/regime/current"')
  })

  it('show an operation together with the other operations of its product', async () => {
    const text = await html('/docs/getRegimeDay')
    expect(text).to.contain('href="/docs#product-regime"').and.to.contain('More in Market regime')
    expect(text).to.contain('<a href="/docs/getRegimeDay" aria-current="page">')
  })

  it('show all fields of the response of one operation, and 404 for an unknown one', async () => {
    const { status, html: text } = await gateway.page('/docs/getRegimeCurrent')
    expect(status).to.equal(200)
    for (const shown of [
      '/v1/regime/current',
      '$0.005',
      'Response: application/json',
      'as_of',
      'STABLE | VOLATILE',
      'payment_required',
      'settlement_pending',
    ])
      expect(text, shown).to.contain(shown)
    expect((await gateway.page('/docs/getNothing')).status).to.equal(404)
    expect((await gateway.page('/docs/getHome')).status).to.equal(404)
  })

  it('stay below 150 kB, including all they load', async () => {
    for (const path of PAGES) {
      const text = await html(path)
      const parts = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js|svg))"/g)].map(([, part]) => part)
      const sizes = await Promise.all(
        [...new Set(parts)].map(async (part) => (await (await fetch(gateway.url + part)).arrayBuffer()).byteLength),
      )
      const all = sizes.reduce((sum, size) => sum + size, Buffer.byteLength(text))
      expect(all, path).to.be.below(150_000)
    }
  })

  it('show a browser the price of a paid route and how to pay it', async () => {
    const { status, html } = await gateway.page('/v1/regime/day/2026-03-01')
    expect(status).to.equal(402)
    for (const shown of [
      '$2.00',
      'base-sepolia',
      '0x00000000000000000000000000000000000000A1',
      '/v1/regime/day/2026-03-01',
    ])
      expect(html, shown).to.contain(shown)
  })

  it('show commands that ask for the paid route as it is called, whatever its address holds', async () => {
    const commandsOf = async (method: string, path: string) => {
      const response = await fetch(gateway.url + path, { method, headers: { accept: 'text/html' } })
      const text = (await response.text()).replaceAll('&#39;', "'").replaceAll('&amp;', '&')
      return [...text.matchAll(/<code>((?:curl|npm) [^<]+)/g)].map(([, command]) => command)
    }
    const [plan] = await commandsOf('POST', '/v1/regime/subscribe/day')
    expect(plan).to.match(/^curl -i -X POST http:\S+\/v1\/regime\/subscribe\/day$/)
    const [curl, pay] = await commandsOf('GET', "/v1/regime/day/$(id)';id;'")
    expect(curl).to.match(/\/\$\(id\)'\\'';id;'\\'''$/)
    expect(pay).to.equal(String.raw`npm run pay -- GET '/v1/regime/day/$(id)'\'';id;'\'''`)
  })

  it('never say that a plan is paid per call', async () => {
    const docs = await html('/docs/purchasePlanDay')
    expect(docs).to.contain('once, for 24 hours of access').and.not.to.contain('per call,')
    const response = await fetch(`${gateway.url}/v1/regime/subscribe/day`, {
      method: 'POST',
      headers: { accept: 'text/html' },
    })
    const refused = await response.text()
    expect(refused).to.contain('This route sells a plan').and.to.contain('an access token for 24 hours')
    expect(refused).not.to.contain('per call')
    expect(await html('/pricing')).to.contain('You pay per call, or once for a plan, in USDC')
  })

  it('show a browser the error with the call id', async () => {
    const { status, html } = await gateway.page('/nowhere')
    expect(status).to.equal(404)
    expect(html)
      .to.contain('Not Found')
      .and.to.match(/<code>[0-9a-f]{8}-[0-9a-f-]{27}<\/code>/)
  })
})
