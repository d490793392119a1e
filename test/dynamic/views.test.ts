import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { openLiveGateway, type LiveGateway, root } from './live-gateway.ts'
import { until } from '../support/until.ts'

const PAGE = (name: string, view: string) => ({
  product: name,
  title: name,
  summary: 'A page.',
  plugin: name,
  operations: { [`show${name}`]: { route: `GET /${name}`, summary: 'A page.', price: 'free', view, handler: 'show' } },
})
const SHOWS = (name: string, views = ''): string => `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: '${name}', ${views} setup: () => ({ handlers: { show: () => ({ word: 'tin' }) } }) })
`

describe('the view of a page', () => {
  let live: LiveGateway
  let viewDir: string
  const untilShows = (path: string, text: string) =>
    until(async () => (await (await live.get(path)).text()).includes(text))

  before(async () => {
    viewDir = mkdtempSync(join(tmpdir(), 'tollgate-views-'))
    cpSync(join(root, 'views'), viewDir, { recursive: true })
    writeFileSync(join(viewDir, 'word.pug'), 'p The word is #{word}.')
    live = await openLiveGateway({ config: { viewDirs: [viewDir] } })
    live.writePlugin('words/index.ts', SHOWS('words'))
    live.writeCatalog('words.json', PAGE('words', 'word'))
    await untilShows('/words', 'The word is tin.')
  })
  after(async () => {
    await live.close()
    rmSync(viewDir, { recursive: true })
  })

  it('is updated without a restart when it or a file that it includes is edited', async () => {
    writeFileSync(join(viewDir, 'word.pug'), 'include part\np It is #{word}.')
    writeFileSync(join(viewDir, 'part.pug'), 'p One part.')
    await untilShows('/words', 'It is tin.')
    expect(await (await live.get('/words')).text()).to.contain('One part.')
    writeFileSync(join(viewDir, 'part.pug'), 'p Another part.')
    await untilShows('/words', 'Another part.')
  })

  it('may come with a plugin, and never replaces a view of the gateway', async () => {
    live.writePlugin('own/index.ts', SHOWS('own', `views: new URL('./views', import.meta.url),`))
    live.writePlugin('own/views/card.pug', 'p Own: #{word}.')
    live.writePlugin('own/views/word.pug', 'p Stolen.')
    live.writeCatalog('own.json', PAGE('own', 'card'))
    await untilShows('/own', 'Own: tin.')
    expect(await (await live.get('/words')).text()).to.contain('It is tin.')
    live.writePlugin('own/views/card.pug', 'p Own and new: #{word}.')
    await untilShows('/own', 'Own and new: tin.')
  })
})

describe('a shop with a look of its own', () => {
  let live: LiveGateway
  let shop: string
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(shop, file)), { recursive: true })
    writeFileSync(join(shop, file), text)
  }
  const page = async (path: string): Promise<string> =>
    (await fetch(live.url + path, { headers: { accept: 'text/html, */*' } })).text()
  const untilShows = (path: string, text: string) => until(async () => (await page(path)).includes(text))

  before(async () => {
    shop = mkdtempSync(join(tmpdir(), 'tollgate-look-'))
    live = await openLiveGateway({ config: { viewDirs: [shop, join(root, 'views')] } })
  })
  after(async () => {
    await live.close()
    rmSync(shop, { recursive: true })
  })

  it('has its words, its logo and its colours on every page as soon as they are written', async () => {
    write('assets/logo.svg', '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>')
    write('assets/shop.css', ':root { --accent: light-dark(#8a1538, #ff9db5) }')
    const look = { logo: '/assets/logo.svg', style: '/assets/shop.css' }
    live.writeCatalog('service.json', { name: 'Acme tides', title: 'Tides by the hour', ...look })
    for (const path of ['/', '/pricing', '/docs', '/nowhere']) {
      await untilShows(path, '<link rel="stylesheet" href="/assets/shop.css">')
      const text = await page(path)
      expect(text).to.contain('<img src="/assets/logo.svg" alt="">Acme tides').and.not.contain('icon-32.png')
      expect(text.indexOf('shop.css')).to.be.above(text.lastIndexOf('/assets/tables.css'))
    }
    const style = await live.get('/assets/shop.css')
    expect([style.status, style.headers.get('cache-control')]).to.deep.equal([200, 'public, max-age=0'])
    expect((await live.get('/assets/logo.svg')).headers.get('content-security-policy')).to.contain("default-src 'none'")
    write('assets/base.css', '/* of the shop */')
    expect(await page('/assets/base.css')).to.equal('/* of the shop */')
    expect((await live.get('/assets/tables.css')).status).to.equal(200)
    for (const path of ['/assets/../home.pug', '/assets/..%2fhome.pug', '/assets/%2e%2e/home.pug', '/assets/.env'])
      expect((await live.get(path)).status, path).to.equal(404)
  })

  it('has its own views in place of those of the gateway, and keeps the last ones without an error', async () => {
    write('layout.pug', 'extends /layout\nblock footer\n  p Acme Tides Ltd.')
    write('pricing.pug', 'extends /pricing\nblock title\n  title What tides cost')
    for (const path of ['/', '/pricing', '/nowhere']) await untilShows(path, 'Acme Tides Ltd.')
    await untilShows('/pricing', '<title>What tides cost</title>')
    write('pricing.pug', 'extends /pricing\nblock title\n  title(')
    await until(async () => (await live.json('/health'))['status'] === 'degraded')
    const { mistakes } = (await live.json('/health')) as { mistakes: { file: string; message: string }[] }
    expect(mistakes.map(({ file }) => file)).to.deep.equal(['built-in/pages.json'])
    expect(mistakes[0]?.message).to.contain('(pricing.pug:3)')
    expect(await page('/pricing')).to.contain('<title>What tides cost</title>')
    rmSync(join(shop, 'pricing.pug'))
    await until(async () => (await live.json('/health'))['status'] === 'ok')
    expect(await page('/pricing')).not.to.contain('What tides cost')
  })

  it('is told of a picture that is not there', async () => {
    live.writeCatalog('service.json', { name: 'Acme tides', logo: '/assets/other.svg' })
    await until(async () => JSON.stringify(await live.json('/health')).includes('There is no views/assets/other.svg.'))
  })
})
