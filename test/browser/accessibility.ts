/** Checks pages with axe, for those who use them with a screen reader or see little. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Gives every document that the page opens from now on the functions of axe, which is large: it is sent once. */
export async function addAxe(page: Page): Promise<void> {
  await page.addInitScript(axe)
}

/** Returns the accessibility violations that axe finds, one line each, for all rules or for some. See `addAxe`. */
export async function accessibilityViolations(page: Page, ...rules: readonly string[]): Promise<string[]> {
  const only = rules.length === 0 ? {} : { runOnly: { type: 'rule', values: rules } }
  const options = { ...only, resultTypes: ['violations'], selectors: false }
  // What axe found in order is many times larger than the page; it stays in the browser.
  return page.evaluate<string[]>(`axe.run(${JSON.stringify(options)}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))`)
}
