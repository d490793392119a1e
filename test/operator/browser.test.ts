import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { accessibilityViolations, addAxe } from '../browser/accessibility.ts'
import { hasChromium, launchChromium } from '../browser/chromium.ts'
import { ask, buy } from '../support/agent.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'

const TOKEN = 'correct-horse-battery'
const SCREENS = ['', '/ledger', '/products', '/subscriptions', '/reconciliation', '/prices', '/catalog']

describe('the operator console in a browser', () => {
  let shop: TestGateway
  let browser: Browser
  let page: Page

  before(async function () {
    if (!hasChromium()) this.skip()
    shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
    await buy(`${shop.url}/v1/echo/a`, shop.wallet)
    await buy(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    const { journal } = shop.gateway
    const [sold] = await journal.list({ states: ['settled'], operations: ['getEcho'], limit: 1 })
    await journal.owed(sold?.key ?? '', 1, 'the answer is lost')
    browser = await launchChromium()
    page = await browser.newPage()
    await addAxe(page)
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
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      const check = async (): Promise<void> => {
        const url = page.url()
        expect(await page.evaluate('document.documentElement.scrollWidth'), url).to.be.at.most(width)
        expect(await accessibilityViolations(page), url).to.deep.equal([])
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
      await page.context().clearCookies()
    })

  it('tells who has sent wrong tokens how long to wait, readable on a phone and on a desktop', async () => {
    const opened = new Date()
    const own = await openGateway({ OPERATOR_TOKEN: TOKEN }, { now: () => opened })
    try {
      for (let guess = 0; guess < 5; guess++)
        await ask(`${own.url}/operator`, { headers: { authorization: `Bearer guess ${guess}` } })
      for (const [colorScheme, width] of [
        ['light', 1280],
        ['dark', 360],
      ] as const) {
        await page.setViewportSize({ width, height: 800 })
        await page.emulateMedia({ colorScheme })
        await page.goto(`${own.url}/operator/login`)
        await page.getByLabel('Operator token').fill(TOKEN)
        await page.getByRole('button', { name: 'Log in' }).click()
        await page.getByRole('alert').filter({ hasText: 'Wait 1 s.' }).waitFor()
        expect(await page.evaluate('document.documentElement.scrollWidth')).to.be.at.most(width)
        expect(await accessibilityViolations(page)).to.deep.equal([])
      }
    } finally {
      await own.close()
    }
  })
})
