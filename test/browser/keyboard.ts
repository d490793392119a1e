/** The pages used with the keyboard alone. */
import { expect } from 'chai'
import type { Service } from './service.ts'

const PAGES = [
  'pricing',
  'docs',
  'docs-operation',
  'docs-operation-body',
  'calculator-result',
  'audit-tool',
  'report-flawed',
  '402',
]

/** Numbers the focusable elements in order and returns the start of the HTML of each. */
const NUMBER_ELEMENTS = `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]')]
  .filter((element) => element.checkVisibility() && !element.closest('details:not([open]) > :not(summary)'))
  .map((element, index) => { element.dataset.stop = index; return element.outerHTML.slice(0, 90) })`

/** Records every element that gets the focus, and whether its focus is visible. */
const RECORD_FOCUS = `window.stops = []
addEventListener('focusin', ({ target }) => {
  const { outlineStyle, outlineWidth } = getComputedStyle(target)
  const { width, height } = target.getBoundingClientRect()
  stops.push({ stop: Number(target.dataset.stop), isVisible: outlineStyle !== 'none' && outlineWidth !== '0px' && width > 0 && height > 0 })
})`

export function keyboard(running: () => Service): void {
  it('reaches every control in order, with a visible focus', async () => {
    const { pages, visit } = running()
    for (const { name, path } of pages.filter(({ name }) => PAGES.includes(name))) {
      const { page, close } = await visit(path)
      const stops = await page.evaluate<string[]>(NUMBER_ELEMENTS)
      expect(stops.length, name).to.be.above(5)
      await page.evaluate(RECORD_FOCUS)
      for (const _ of stops) await page.keyboard.press('Tab')
      const focused = await page.evaluate<object[]>('stops')
      for (const [index, html] of stops.entries())
        expect(focused[index], `${name}: ${html}`).to.deep.equal({ stop: index, isVisible: true })
      expect(focused, name).to.have.length(stops.length)
      await close()
    }
  })

  it('skips to the content with the first Tab', async () => {
    const { page, close } = await running().visit('/pricing')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).to.equal('Skip to content')
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.hash === '#content')
    await page.keyboard.press('Tab')
    expect(await page.evaluate(`document.querySelector('main').contains(document.activeElement)`)).to.equal(true)
    await close()
  })
}
