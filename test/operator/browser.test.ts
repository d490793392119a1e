import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { expect } from 'chai'
import { type Browser, chromium } from 'playwright-core'
import { buy } from '../support/agent.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'

const CHROMIUM = '/usr/bin/chromium'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TOKEN = 'correct-horse-battery'
const SCREENS = ['', '/ledger', '/products', '/subscriptions', '/reconciliation', '/prices', '/catalog']

describe('the operator console in a browser', () => {
  let shop: TestGateway
  let browser: Browser

  before(async function () {
    if (!existsSync(CHROMIUM)) this.skip()
    shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
    await buy(`${shop.url}/v1/echo/a`, shop.wallet)
    await buy(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    const { journal } = shop.gateway
    const [sold] = await journal.list({ states: ['settled'], operations: ['getEcho'], limit: 1 })
    await journal.owed(sold?.key ?? '', 1, 'the answer is lost')
    const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking']
    browser = await chromium.launch({ executablePath: CHROMIUM, args })
  })
  after(async () => {
    await browser?.close()
    await shop?.close()
  })

  for (const [colorScheme, width] of [
    ['light', 1280],
    ['dark', 360],
  ] as const)
    it(`is accessible and fits a ${colorScheme} screen of ${width} pixels, from login to revocation and logout`, async () => {
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 } })
      const page = await context.newPage()
      const check = async (): Promise<void> => {
        const url = page.url()
        expect(await page.evaluate('document.documentElement.scrollWidth'), url).to.be.at.most(width)
        await page.evaluate(axe)
        const { violations } = (await page.evaluate('axe.run()')) as AxeResults
        expect(
          violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
          url,
        ).to.deep.equal([])
      }
      await page.goto(`${shop.url}/operator`)
      await check()
      await page.getByLabel('Operator token').fill(TOKEN)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('button', { name: 'Log out' }).waitFor()
      for (const screen of SCREENS) {
        await page.goto(`${shop.url}/operator${screen}`)
        await check()
      }
      await page.goto(`${shop.url}/operator/ledger`)
      expect(await page.getByLabel('Repayment transaction').count()).to.equal(width === 1280 ? 1 : 0)
      if (width === 1280) {
        await page.getByLabel('Repayment transaction').fill(`0x${'5b'.repeat(32)}`)
        await page.getByRole('button', { name: 'Record repayment' }).click()
        await page.getByText('There are no debts.').waitFor()
        await check()
      }
      await page.goto(`${shop.url}/operator/subscriptions`)
      const revoke = page.getByRole('button', { name: /^Revoke/ })
      if (width === 1280) await revoke.click()
      await page.locator('td', { hasText: 'revoked' }).waitFor()
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByLabel('Operator token').waitFor()
      await page.goto(`${shop.url}/operator`)
      expect(await page.getByLabel('Operator token').count()).to.equal(1)
      await context.close()
    })
})
