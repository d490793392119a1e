/** Checks every page on large and small screens, light and dark, with and without scripts, and for screen readers. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { HtmlValidate } from 'html-validate'
import type { Page } from 'playwright-core'
import { accessibilityViolations, addAxe } from './accessibility.ts'
import type { Service } from './service.ts'

/** Rules that do not apply to the style in which Pug writes void elements and boolean attributes. */
const validator = new HtmlValidate({ extends: ['html-validate:standard'] })

/** Pages that share a view with another page. The slow checks skip them. */
const SAME_VIEW = [
  'home-err',
  'founding-ok',
  'audit-tool-err',
  'report-sample',
  'report-many',
  'report-few',
  'report-futures',
  '402-refused',
  '404',
  '413',
  '500',
  '503',
]
/** Reports that were read from real-looking files, with money. */
const AUDITED = ['report-stocks', 'report-crypto', 'report-lots', 'report-few', 'report-futures']
/** Exports of brokers, exchanges and platforms. */
const EXPORTS = ['ibkr-activity.csv', 'binance-spot.csv', 'mt5-positions.csv', 'schwab.csv', 'tradingview-net.csv']
/** Checks that depend on screen size and colour scheme. */
const BY_SCREEN = ['color-contrast', 'scrollable-region-focusable', 'target-size']
/** The most bytes a page may have together with its assets. */
const MAX_BYTES = 150_000
const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 390, height: 844 }
const NARROWEST = { width: 320, height: 640 }

/** URLs in the HTML of a page. Anything else it requests would load late. */
const LINKED_URLS = `[...document.querySelectorAll('[src], link[href]')].map((element) => element.getAttribute('src') ?? element.getAttribute('href'))`

/** Elements that overflow the screen horizontally. */
const OVERFLOWING = `document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
  [...document.querySelectorAll('main *')].filter((element) => element.getBoundingClientRect().right > innerWidth)
    .filter((element) => !element.closest('.scroll, pre, output, svg')).map((element) => 'overflows: ' + element.outerHTML.slice(0, 90)).slice(-3)`
/** Opens all collapsed details. */
const OPEN_DETAILS = `for (const details of document.querySelectorAll('details')) details.open = true`
const overflow = (page: Page): Promise<string[]> => page.evaluate<string[]>(OVERFLOWING)

/** Audits an export and returns the path of its report. */
async function audited(url: string, name: string): Promise<string> {
  const form = new FormData()
  form.set('file', new Blob([readFileSync(resolve(import.meta.dirname, '../fixtures/ledgers', name))]), name)
  const answer = await fetch(`${url}/audit`, { method: 'POST', body: form })
  expect(answer.status, name).to.equal(200)
  const { report_url: path } = (await answer.json()) as { readonly report_url: string }
  return path
}

/** Collects faults by page, so that every page is checked before the test fails. */
class Faults {
  readonly found: Record<string, readonly string[]> = {}
  add(where: string, faults: readonly string[]): void {
    if (faults.length > 0) this.found[where] = faults
  }
}

export function pageChecks(running: () => Service): void {
  it('is valid HTML and, with its assets, no larger than 150 kB', async () => {
    const { pages, url } = running()
    const faults = new Faults()
    const sizes = new Map<string, number>()
    for (const { name, path, status, headers } of pages) {
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
      faults.add(`${name}: bytes`, weight > MAX_BYTES ? [String(weight)] : [])
    }
    expect(faults.found).to.deep.equal({})
  })

  it('is accessible and fits the screen on desktop and phone, light and dark, and loads only the assets it names', async () => {
    const { pages, open, url } = running()
    const faults = new Faults()
    const { page, requests, consoleErrors, close } = await open('')
    await addAxe(page)
    for (const { name, path, headers } of pages.filter(({ name }) => !SAME_VIEW.includes(name))) {
      const [requestsBefore, errorsBefore] = [requests.length, consoleErrors.length]
      await page.setExtraHTTPHeaders({ ...headers })
      await page.setViewportSize(DESKTOP)
      await page.emulateMedia({ colorScheme: 'light' })
      await page.goto(url + path)
      const linked = await page.evaluate<string[]>(LINKED_URLS)
      faults.add(
        `${name}: requests what its HTML does not name`,
        requests.slice(requestsBefore + 1).filter((address) => !linked.includes(address)),
      )
      faults.add(`${name}, desktop, light`, [...(await accessibilityViolations(page)), ...(await overflow(page))])
      await page.emulateMedia({ colorScheme: 'dark' })
      faults.add(`${name}, desktop, dark`, await accessibilityViolations(page, 'color-contrast'))
      await page.setViewportSize(PHONE)
      faults.add(`${name}, phone, dark`, [
        ...(await accessibilityViolations(page, ...BY_SCREEN)),
        ...(await overflow(page)),
      ])
      await page.evaluate(OPEN_DETAILS)
      await page.setViewportSize(NARROWEST)
      faults.add(`${name}, at 320 pixels, which is a desktop at 400%`, await overflow(page))
      faults.add(`${name}: console errors`, consoleErrors.slice(errorsBefore))
    }
    await close()
    expect(faults.found).to.deep.equal({})
  })

  it('shows its content and fits the screen without JavaScript', async () => {
    const { pages, open, url } = running()
    const faults = new Faults()
    const { page, consoleErrors, close } = await open('', { javaScriptEnabled: false })
    await page.setViewportSize(PHONE)
    for (const { name, path, headers } of pages.filter(({ name }) => !SAME_VIEW.includes(name))) {
      await page.setExtraHTTPHeaders({ ...headers })
      await page.goto(url + path)
      expect((await page.locator('main').innerText()).length, name).to.be.above(60)
      expect(await page.locator('h1').count(), name).to.equal(1)
      faults.add(name, [...consoleErrors, ...(await overflow(page))])
    }
    await close()
    expect(faults.found).to.deep.equal({})
  })

  it('of a report says in one screen what was read, why the verdict, and what it is worth in money', async () => {
    const { pages, open, url } = running()
    const { page, close } = await open('')
    const stored = pages.filter(({ name }) => AUDITED.includes(name)).map(({ path }) => path)
    const uploaded = await Promise.all(EXPORTS.map((name) => audited(url, name)))
    for (const path of [...stored, ...uploaded])
      for (const screen of [PHONE, { width: 1280, height: 800 }]) {
        await page.setViewportSize(screen)
        await page.goto(url + path)
        const [read, verdict, money] = [page.locator('.read'), page.locator('.verdict'), page.locator('.money')]
        expect(await read.innerText(), path).to.match(/\d rows?: .* trades? in \d/)
        expect(await verdict.innerText(), path).to.match(/(Not profitable|Unproven|Plausible)[^]*\.$/m)
        expect(await money.innerText(), path).to.match(/after costs|No total\./)
        for (const part of [read, verdict, money.locator('p').first()]) {
          const box = await part.boundingBox()
          expect((box?.y ?? Infinity) + (box?.height ?? 0), `${path} ${screen.width}`).to.be.below(screen.height)
        }
      }
    await close()
  })

  it('of the start says in its first screen what is sold, for whom, and every price', async () => {
    const { page, close } = await running().open('/')
    for (const screen of [PHONE, DESKTOP]) {
      await page.setViewportSize(screen)
      expect(await page.locator('.lead').first().innerText()).to.match(/^For agents that trade: /)
      expect(await page.locator('.offers').innerText()).to.match(/Market regime\s+\$0\.005[^]*Backtest audit\s+\$5\.00/)
      for (const part of [page.locator('.offers'), page.getByRole('link', { name: 'All prices' })]) {
        const box = await part.boundingBox()
        expect((box?.y ?? Infinity) + (box?.height ?? 0), String(screen.width)).to.be.below(screen.height)
      }
    }
    await close()
  })

  for (const javaScriptEnabled of [true, false])
    it(`folds the methodology, and opens the fold to which a link leads, ${javaScriptEnabled ? 'with' : 'without'} JavaScript`, async () => {
      const { page, close } = await running().open('/methodology', { javaScriptEnabled })
      await page.setViewportSize(DESKTOP)
      const main = page.locator('main')
      expect((await main.boundingBox())?.height).to.be.below(4000)
      const limits = page.getByText('Limits', { exact: true })
      expect(await limits.filter({ visible: true }).count()).to.equal(0)
      for (const leave of ['', '/report/sample']) {
        if (leave !== '') await page.goto(running().url + leave)
        const name = leave === '' ? 'Market regime' : 'How this report is computed'
        await main.getByRole('link', { name, exact: true }).click()
        await page.waitForURL('**/methodology#*')
        await limits.filter({ visible: true }).first().waitFor()
        const title = page.locator('details[open] > summary').last()
        expect(await title.innerText()).to.contain(leave === '' ? 'Market regime' : 'Backtest audit')
        expect((await title.boundingBox())?.y).to.be.within(0, DESKTOP.height - 100)
      }
      await close()
    })

  it('has no animation if the visitor prefers reduced motion, and visible lines with forced colours', async () => {
    const { open, url } = running()
    const { page, close } = await open('')
    await page.setViewportSize(DESKTOP)
    await page.emulateMedia({ reducedMotion: 'reduce', forcedColors: 'active' })
    await page.goto(url)
    expect(await page.evaluate('document.getAnimations().length')).to.equal(0)
    const [paper, line] = await page.evaluate<[string, string]>(
      `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.curve')).stroke]`,
    )
    expect(line).not.to.equal(paper)
    await close()
  })

  it('prints without the menu and without cut-off content', async () => {
    const { pages, open, url } = running()
    const { path = '' } = pages.find(({ name }) => name === 'report-flawed') ?? {}
    const { page, close } = await open('')
    await page.setViewportSize({ width: 720, height: 1000 })
    await page.goto(url + path)
    await page.emulateMedia({ media: 'print' })
    for (const selector of ['.masthead nav', '.footer', '.keep'])
      expect(await page.locator(selector).isVisible()).to.equal(false)
    for (const selector of ['h1', '.plot', '.place'])
      expect(await page.locator(selector).first().isVisible()).to.equal(true)
    expect(await overflow(page)).to.deep.equal([])
    expect((await page.pdf({ format: 'A4' })).length).to.be.above(10_000)
    await close()
  })
}
