import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { expect } from 'chai'
import { type Browser, chromium, type Page } from 'playwright-core'
import { openPages, type PageShop } from './shop.ts'

const CHROMIUM = '/usr/bin/chromium'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const PAGES = ['/', '/pricing', '/methodology', '/docs', '/v1/regime/current', '/nowhere']

describe('the pages in a browser', () => {
  let shop: PageShop
  let browser: Browser

  before(async function () {
    if (!existsSync(CHROMIUM)) this.skip()
    shop = await openPages()
    const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking']
    browser = await chromium.launch({ executablePath: CHROMIUM, args })
  })
  after(async () => {
    await browser?.close()
    await shop?.close()
  })

  async function open(path: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<Page> {
    const page = await browser.newPage(options)
    await page.goto(shop.url + path)
    return page
  }

  for (const path of PAGES)
    it(`have no barrier, fit the screen and ask nothing of other hosts: ${path}`, async () => {
      for (const [colorScheme, width] of [
        ['light', 1280],
        ['dark', 360],
      ] as const) {
        const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } })
        const asked: string[] = []
        const complaints: string[] = []
        page.on('request', (request) => asked.push(request.url()))
        page.on('console', (message) => complaints.push(message.text()))
        await page.goto(shop.url + path)
        expect(await page.evaluate('document.documentElement.scrollWidth'), colorScheme).to.be.at.most(width)
        await page.evaluate(axe)
        const { violations } = (await page.evaluate('axe.run()')) as AxeResults
        expect(
          violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
          colorScheme,
        ).to.deep.equal([])
        expect(asked.filter((url) => !url.startsWith(shop.url))).to.deep.equal([])
        expect(complaints.filter((text) => /policy|refused/i.test(text))).to.deep.equal([])
        await page.close()
      }
    })

  it('let a free route be tried in place', async () => {
    const page = await open('/docs')
    const trial = page.locator('form.trial[action="/v1/regime/sample"]')
    await trial.getByRole('button', { name: 'Try it' }).click()
    await page.waitForFunction(`document.querySelector('#getRegimeSample output').textContent.startsWith('200')`)
    expect(await trial.locator('output').textContent()).to.contain('"regime": "VOLATILE"')
    expect(new URL(page.url()).pathname).to.equal('/docs')
    await page.close()
  })

  it('let a free route be tried without scripts', async () => {
    const page = await open('/docs', { javaScriptEnabled: false })
    await page.locator('form.trial[action="/v1/regime/sample"] button').click()
    await page.waitForURL('**/v1/regime/sample*')
    expect(await page.content()).to.contain('VOLATILE')
    await page.close()
  })

  it('can be used by keyboard alone: the first stop skips to the content', async () => {
    const page = await open('/pricing')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).to.equal('Skip to content')
    await page.keyboard.press('Enter')
    expect(new URL(page.url()).hash).to.equal('#content')
    await page.close()
  })
})
