/** Checks every page on large and small screens, light and dark, with and without scripts, and for screen readers. */
import { expect } from 'chai'
import { HtmlValidate } from 'html-validate'
import type { Page } from 'playwright-core'
import { barriers, type Service } from './service.ts'

/** Rules that do not apply to the style in which Pug writes void elements and boolean attributes. */
const validator = new HtmlValidate({ extends: ['html-validate:standard'] })

/** Rendered from the same views as other pages, so some checks run on one of them only. */
const ALIKE = [
  'home-err',
  'founding-ok',
  'audit-tool-err',
  'report-sample',
  'report-many',
  '402-refused',
  '404',
  '413',
  '500',
  '503',
]
/** Checks that depend on screen size and colour scheme. */
const BY_SCREEN = ['color-contrast', 'scrollable-region-focusable', 'target-size']
const HEAVIEST = 150_000
const DESK = { width: 1280, height: 900 }
const PHONE = { width: 390, height: 844 }
const NARROWEST = { width: 320, height: 640 }

/** URLs in the HTML of a page. Anything else it requests would load late. */
const NAMED = `[...document.querySelectorAll('[src], link[href]')].map((one) => one.getAttribute('src') ?? one.getAttribute('href'))`

/** Elements that overflow the screen horizontally. */
const WIDER = `document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
  [...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > innerWidth)
    .filter((one) => !one.closest('.scroll, pre, output, svg')).map((one) => 'overflows: ' + one.outerHTML.slice(0, 90)).slice(-3)`
/** Opens all collapsed details. */
const OPENED = `for (const one of document.querySelectorAll('details')) one.open = true`
const overflow = (page: Page): Promise<string[]> => page.evaluate<string[]>(WIDER)

/** Problems by page. Every page is checked before the test fails. */
class Faults {
  readonly found: Record<string, readonly string[]> = {}
  add(where: string, faults: readonly string[]): void {
    if (faults.length > 0) this.found[where] = faults
  }
}

export function walk(running: () => Service): void {
  it('is valid HTML and small, including its assets', async () => {
    const { places, url } = running()
    const faults = new Faults()
    const sizes = new Map<string, number>()
    for (const { name, path, status, headers } of places) {
      const answer = await fetch(url + path, { headers: { accept: 'text/html', ...headers } })
      expect(answer.status, name).to.equal(status)
      const html = await answer.text()
      const { results } = await validator.validateString(html)
      const messages = results.flatMap(({ messages }) => messages)
      faults.add(
        name,
        messages.map(({ ruleId, selector, message }) => `${ruleId}: ${message} (${selector})`),
      )
      let weight = Buffer.byteLength(html)
      for (const [, part = ''] of html.matchAll(/"(\/assets\/[^"]+\.(?:css|js|woff2|svg))"/g)) {
        if (!sizes.has(part)) sizes.set(part, (await (await fetch(url + part)).arrayBuffer()).byteLength)
        weight += sizes.get(part) ?? 0
      }
      faults.add(`${name}: bytes`, weight > HEAVIEST ? [String(weight)] : [])
    }
    expect(faults.found).to.deep.equal({})
  })

  it('is accessible and has no overflow on desktop and phone, light and dark, and loads only its own assets', async () => {
    const { places, open, url } = running()
    const faults = new Faults()
    const { page, asked, complaints, close } = await open('')
    for (const { name, path, headers } of places.filter(({ name }) => !ALIKE.includes(name))) {
      const before = [asked.length, complaints.length] as const
      await page.setExtraHTTPHeaders({ ...headers })
      await page.setViewportSize(DESK)
      await page.emulateMedia({ colorScheme: 'light' })
      await page.goto(url + path)
      const named = await page.evaluate<string[]>(NAMED)
      faults.add(
        `${name}: asks for what it does not name`,
        asked.slice(before[0] + 1).filter((address) => !named.includes(address)),
      )
      faults.add(`${name}, desk, light`, [...(await barriers(page)), ...(await overflow(page))])
      await page.emulateMedia({ colorScheme: 'dark' })
      faults.add(`${name}, desk, dark`, await barriers(page, 'color-contrast'))
      await page.setViewportSize(PHONE)
      faults.add(`${name}, phone, dark`, [...(await barriers(page, ...BY_SCREEN)), ...(await overflow(page))])
      await page.evaluate(OPENED)
      await page.setViewportSize(NARROWEST)
      faults.add(`${name}, at 320 pixels, which is a desk at 400%`, await overflow(page))
      faults.add(`${name}: complaints`, complaints.slice(before[1]))
    }
    await close()
    expect(faults.found).to.deep.equal({})
  })

  it('has the same content and no overflow without scripts', async () => {
    const { places, open, url } = running()
    const faults = new Faults()
    const { page, complaints, close } = await open('', { viewport: PHONE, javaScriptEnabled: false })
    for (const { name, path, headers } of places.filter(({ name }) => !ALIKE.includes(name))) {
      await page.setExtraHTTPHeaders({ ...headers })
      await page.goto(url + path)
      expect((await page.locator('main').innerText()).length, name).to.be.above(60)
      expect(await page.locator('h1').count(), name).to.equal(1)
      faults.add(name, [...complaints, ...(await overflow(page))])
    }
    await close()
    expect(faults.found).to.deep.equal({})
  })

  it('has no animation with reduced motion, and visible lines with forced colours', async () => {
    const { open } = running()
    const { page, close } = await open('/', { reducedMotion: 'reduce', forcedColors: 'active', viewport: DESK })
    expect(await page.evaluate('document.getAnimations().length')).to.equal(0)
    const [paper, line] = await page.evaluate<[string, string]>(
      `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.curve')).stroke]`,
    )
    expect(line).not.to.equal(paper)
    await close()
  })

  it('prints without the menu and without cut-off content', async () => {
    const { places, open } = running()
    const { path = '' } = places.find(({ name }) => name === 'report-flawed') ?? {}
    const { page, close } = await open(path, { viewport: { width: 720, height: 1000 } })
    await page.emulateMedia({ media: 'print' })
    for (const hidden of ['.masthead nav', '.footer', '.keep'])
      expect(await page.locator(hidden).isVisible()).to.equal(false)
    for (const shown of ['h1', '.plot', '.place']) expect(await page.locator(shown).first().isVisible()).to.equal(true)
    expect(await overflow(page)).to.deep.equal([])
    expect((await page.pdf({ format: 'A4' })).length).to.be.above(10_000)
    await close()
  })
}
