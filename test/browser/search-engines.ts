/** What search engines and link previews see of a page, and which pages they must not index. */
import { expect } from 'chai'
import type { Service } from './service.ts'

/** Pages that are private or only temporary. */
const UNLISTED = /^(report|receipt|founding-leave|calculator-422|\d{3})/

export function searchEngines(running: () => Service): void {
  const html = async (path: string, headers = {}): Promise<string> =>
    (await fetch(running().url + path, { headers: { accept: 'text/html', ...headers } })).text()
  const content = (text: string, name: string): string =>
    new RegExp(`<meta (?:name|property)="${name}" content="([^"]*)"`).exec(text)?.[1] ?? ''

  it('finds the title, description, canonical URL, preview card and structured data of every page', async () => {
    const { pages, url } = running()
    const listed = pages.filter(({ name }) => !UNLISTED.test(name))
    expect(listed.length).to.be.above(12)
    for (const { name, path } of listed) {
      const text = await html(path)
      const [address = ''] = (url + path).split('?')
      expect(/<title>([^<]+)<\/title>/.exec(text)?.[1]?.length, name).to.be.within(10, 70)
      expect(content(text, 'description').length, name).to.be.within(50, 160)
      expect(text, name).to.contain(`<link rel="canonical" href="${address}">`)
      for (const property of ['og:title', 'og:description', 'og:url', 'og:image', 'twitter:card'])
        expect(content(text, property), `${name}: ${property}`).not.to.equal('')
      expect(content(text, 'og:url'), name).to.equal(address)
      expect(text, name).not.to.contain('noindex')
      const data = JSON.parse(/<script type="application\/ld\+json">(.+?)<\/script>/.exec(text)?.[1] ?? '') as object
      expect(data, name).to.have.property('@context', 'https://schema.org')
      expect(data, name).to.have.any.keys('@type', '@graph')
    }
  })

  it('is told not to index reports, receipts, e-mail links and errors', async () => {
    for (const { name, path, headers } of running().pages.filter(({ name }) => UNLISTED.test(name))) {
      const text = await html(path, headers)
      expect(content(text, 'robots'), name).to.match(/^noindex/)
      expect(text, name).not.to.match(/canonical|ld\+json|og:/)
    }
  })

  it('finds the listed pages in the sitemap, with their dates, and in llms.txt', async () => {
    const { pages, url } = running()
    const [sitemap, llms] = await Promise.all(['/sitemap.xml', '/llms.txt'].map((path) => html(path)))
    const entries = [...(sitemap ?? '').matchAll(/<loc>([^<]+)<\/loc><lastmod>(\d{4}-\d\d-\d\d)<\/lastmod>/g)]
    const inSitemap = entries.map(([, address = '']) => address.replace(url, ''))
    expect(sitemap?.match(/<url>/g)).to.have.length(inSitemap.length)
    const listed = pages.filter(({ name, path }) => !UNLISTED.test(name) && !/[?]|docs\//.test(path))
    expect(inSitemap).to.include.members(listed.map(({ path }) => path))
    for (const path of inSitemap) {
      const { status, body } = await fetch(url + path)
      await body?.cancel()
      expect(status, path).to.equal(200)
      expect(llms, path).to.contain(`](${url}${path}`)
    }
    expect(inSitemap.filter((path) => /report\/|receipt|operator|leave/.test(path))).to.deep.equal([])
  })
}
