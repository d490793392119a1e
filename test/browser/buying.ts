/** Buys from the documentation with the test wallet of the sandbox, as a person without a wallet of their own would. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { accessibilityViolations, addAxe } from './accessibility.ts'
import type { Service } from './service.ts'

const LEDGERS = resolve(import.meta.dirname, '../../views/assets/ledgers')
const SCREENS = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } }

/** Twelve days of bars, as one pastes them from a spreadsheet. The high of one is below its low. */
const BARS = [
  'date,open,high,low,close,volume',
  ...Array.from(
    { length: 12 },
    (_, day) => `2024-06-${String(day + 3).padStart(2, '0')},100,${day === 4 ? 90 : 102},99,101,1000`,
  ),
].join('\n')

const OVERFLOWS = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'

export function buying(running: () => Service): void {
  async function openWithTestWallet(operation: string, screen: keyof typeof SCREENS) {
    const service = running()
    const opened = await service.open('')
    const { page } = opened
    await addAxe(page)
    await page.setViewportSize(SCREENS[screen])
    await page.goto(`${service.url}/docs/${operation}`)
    await page.getByRole('button', { name: 'Use a test wallet' }).click()
    await page.getByText('has test money of the sandbox').waitFor()
    await service.moved()
    return opened
  }

  async function pay(page: Page) {
    await page.getByRole('button', { name: /^Pay \$.* with wallet$/ }).click()
    const answer = page.getByRole('region', { name: 'Answer', exact: true })
    await answer.getByText(/^Paid in transaction 0x[0-9a-f]{64}$/).waitFor()
    const text = await answer.locator('pre').innerText()
    return { answer, value: JSON.parse(text) as Record<string, unknown> }
  }

  async function check(page: Page, consoleErrors: readonly string[]) {
    expect(await accessibilityViolations(page)).to.deep.equal([])
    expect(await page.evaluate(OVERFLOWS), 'wider than the screen').to.equal(false)
    expect(consoleErrors).to.deep.equal([])
  }

  for (const screen of ['desktop', 'phone'] as const) {
    it(`buys an estimate with the form, draws it and writes it as code, on a ${screen}`, async () => {
      const { page, consoleErrors, close } = await openWithTestWallet('estimateExecutionCost', screen)
      await page.getByLabel('notional_usd').fill('70000')
      await page.getByRole('button', { name: 'MCP' }).click()
      expect(await page.locator('[data-code="MCP"] code').innerText()).to.contain('"notional_usd": 70000')
      const { answer, value } = await pay(page)
      expect(value).to.include({ symbol: 'BTC-USD', notional_usd: 70_000 })
      await answer.getByRole('table', { name: 'Cost by part' }).waitFor()
      expect(await running().moved()).to.deep.equal({ buyer: -10_000n, payee: 10_000n })
      await check(page, consoleErrors)
      await close()
    })

    it(`buys a check of pasted bars, on a ${screen}`, async () => {
      const { page, consoleErrors, close } = await openWithTestWallet('checkBarQuality', screen)
      await page.getByLabel('bars', { exact: false }).first().fill('')
      await page.getByPlaceholder('or paste the text here').fill(BARS)
      const { answer, value } = await pay(page)
      expect(value).to.include({ bars: 12 }).and.to.have.property('by_code')
      expect(value['by_code']).to.have.property('high_lt_low')
      await answer.getByRole('table', { name: 'Findings by code' }).waitFor()
      await answer.getByRole('cell', { name: 'high_lt_low' }).first().waitFor()
      await check(page, consoleErrors)
      await close()
    })

    it(`buys an audit of a file, and links to its page, on a ${screen}`, async () => {
      const { page, consoleErrors, close } = await openWithTestWallet('auditBacktest', screen)
      await page.getByLabel('file: choose a file').setInputFiles(join(LEDGERS, 'round-trips.csv'))
      expect(await page.locator('[data-code="curl"] code').innerText()).to.contain("-F 'file=@round-trips.csv'")
      const { answer, value } = await pay(page)
      expect(value).to.have.property('verdict')
      await check(page, consoleErrors)
      await answer.getByRole('link', { name: 'Open it as a page' }).click()
      await page.waitForURL('**/report/*')
      expect(await running().moved()).to.deep.equal({ buyer: -5_000_000n, payee: 5_000_000n })
      await close()
    })

    it(`buys a plan whose token gives access, on a ${screen}`, async () => {
      const { page, consoleErrors, close } = await openWithTestWallet('purchasePlanArchive30d', screen)
      expect(await page.getByLabel('body').count()).to.equal(0)
      const { value } = await pay(page)
      const headers = { 'x-service-token': String(value['token']) }
      const archive = await fetch(`${running().url}/v1/potus/archive`, { headers })
      expect(await archive.json()).to.have.property('items')
      await check(page, consoleErrors)
      await close()
    })
  }

  it('shows a mistake at its field, charges nothing, and sells when it is mended', async () => {
    const { page, close } = await openWithTestWallet('checkBarQuality', 'phone')
    await page.getByText(/^More fields/).click()
    const interval = page.getByLabel('interval')
    await interval.fill('1 month')
    await page.getByText(/^More fields/).click()
    await page.getByRole('button', { name: 'Pay' }).click()
    await page.locator('.field', { has: interval }).getByRole('alert').waitFor()
    expect(await interval.getAttribute('aria-invalid')).to.equal('true')
    expect(await interval.inputValue()).to.equal('1 month')
    expect(await page.evaluate('document.activeElement.name')).to.equal('interval')
    expect(await accessibilityViolations(page)).to.deep.equal([])
    expect(await running().moved()).to.deep.equal({ buyer: 0n, payee: 0n })
    await interval.fill('1d')
    await pay(page)
    expect(await running().moved()).to.deep.equal({ buyer: -50_000n, payee: 50_000n })
    await close()
  })

  it('says at a field that its text is not JSON', async () => {
    const { page, close } = await openWithTestWallet('checkBarQuality', 'desktop')
    const bars = page.locator('[name="bars"]')
    await bars.fill('[[1,')
    await page.getByRole('button', { name: 'Pay' }).click()
    expect(await page.locator('.field', { has: bars }).getByRole('alert').innerText()).to.contain('This is not JSON')
    await close()
  })

  it('calls a free POST', async () => {
    const { page, close } = await running().visit('/docs/verifyReceipt')
    await page.getByRole('button', { name: 'Try it' }).click()
    const answer = page.getByRole('region', { name: 'Answer', exact: true })
    await answer.getByText('200 OK').waitFor()
    expect(await answer.locator('pre').innerText()).to.contain('"valid": false')
    await close()
  })

  it('draws rows over time', async () => {
    const { page, close } = await openWithTestWallet('getRegimeHistory', 'phone')
    await page.getByLabel('start').fill('')
    await page.getByLabel('limit').fill('60')
    const { answer } = await pay(page)
    await answer.getByRole('img', { name: 'Forecast volatility and boundary' }).waitFor()
    await answer.getByText(/^The first 20 of \d+ rows$/).waitFor()
    expect(await accessibilityViolations(page)).to.deep.equal([])
    expect(await page.evaluate(OVERFLOWS)).to.equal(false)
    await close()
  })

  it('saves an answer that is no text', async () => {
    const { page, close } = await openWithTestWallet('getPerpFundingRates', 'desktop')
    await page.getByText(/^More fields/).click()
    await page.getByLabel('format').selectOption('parquet')
    await page.getByRole('button', { name: 'Pay' }).click()
    const download = page.waitForEvent('download')
    await page.getByRole('link', { name: /^Save the answer: \d+ bytes/ }).click()
    expect(
      readFileSync(await (await download).path())
        .subarray(0, 4)
        .toString(),
    ).to.equal('PAR1')
    await close()
  })

  it('keeps the types of fields in the arguments of a tool', async () => {
    const { page, close } = await running().visit('/docs/getPerpFundingRates')
    await page.getByLabel('limit').fill('3')
    await page.getByRole('button', { name: 'MCP' }).click()
    const message = JSON.parse(await page.locator('[data-code="MCP"] code').innerText()) as { params: object }
    expect(message.params).to.deep.equal({ name: 'get_perp_funding_rates', arguments: { symbol: 'BTC', limit: 3 } })
    await close()
  })
}
