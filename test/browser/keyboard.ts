/** Tab reaches every control in document order, and the focus is visible. */
import { expect } from 'chai'
import type { Service } from './service.ts'

const PAGES = ['pricing', 'docs', 'docs-operation', 'calculator-result', 'audit-tool', 'report-flawed', '402']

/** Numbers the focusable elements in order and returns their count. */
const NUMBERED = `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary, [tabindex]')]
  .filter((one) => one.checkVisibility() && !one.closest('details:not([open]) > :not(summary)'))
  .map((one, index) => { one.dataset.stop = index; return one.outerHTML.slice(0, 90) })`

/** Records every element that gets the focus, and whether its focus is visible. */
const RECORDED = `window.stops = []
addEventListener('focusin', ({ target: one }) => {
  const { outlineStyle, outlineWidth } = getComputedStyle(one)
  const { width, height } = one.getBoundingClientRect()
  stops.push({ stop: Number(one.dataset.stop), seen: outlineStyle !== 'none' && outlineWidth !== '0px' && width > 0 && height > 0 })
})`

export function keyboard(running: () => Service): void {
  it('reaches every control in order, with a visible focus', async () => {
    const { places, open } = running()
    for (const { name, path } of places.filter(({ name }) => PAGES.includes(name))) {
      const { page, close } = await open(path)
      const stops = await page.evaluate<string[]>(NUMBERED)
      expect(stops.length, name).to.be.above(5)
      await page.evaluate(RECORDED)
      for (const _ of stops) await page.keyboard.press('Tab')
      const focused = await page.evaluate<object[]>('stops')
      for (const [index, html] of stops.entries())
        expect(focused[index], `${name}: ${html}`).to.deep.equal({ stop: index, seen: true })
      expect(focused, name).to.have.length(stops.length)
      await close()
    }
  })

  it('can skip to the content with the first Tab', async () => {
    const { page, close } = await running().open('/pricing')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).to.equal('Skip to content')
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.hash === '#content')
    await page.keyboard.press('Tab')
    expect(await page.evaluate(`document.querySelector('main').contains(document.activeElement)`)).to.equal(true)
    await close()
  })
}
