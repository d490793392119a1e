/** Uses every form as a person would, with and without JavaScript. */
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { Service } from './service.ts'

const LEDGERS = resolve(import.meta.dirname, '../../views/assets/ledgers')
interface Schema {
  readonly $defs: { readonly AuditRequest: { readonly properties: Readonly<Record<string, unknown>> } }
}

const CALCULATOR = '/tools/deflated-sharpe-calculator'

export function forms(running: () => Service): void {
  for (const javaScriptEnabled of [true, false]) {
    const how = javaScriptEnabled ? 'with JavaScript' : 'without JavaScript'
    const open = (path: string) => running().visit(path, { javaScriptEnabled })

    it(`audits a ledger and deletes its report, ${how}`, async () => {
      const { page, close } = await open('/audit-tool')
      await page.getByLabel('Trades, as CSV').setInputFiles(join(LEDGERS, 'round-trips.csv'))
      await page.getByLabel('Trading costs').selectOption('crypto_perp')
      await page.getByLabel('Variants tried before this one').fill('25')
      await page.getByText('Reference bars and symbol').click()
      await page.getByLabel('Bars to check the fills against').setInputFiles(join(LEDGERS, 'bars.csv'))
      await page.getByRole('button', { name: 'Audit' }).click()
      await page.waitForURL('**/report/*')
      expect(await page.locator('h1').innerText()).to.equal('Reject')
      expect(await page.locator('main').innerText())
        .to.contain('25 trials')
        .and.to.contain('crypto perp')
      await page.getByRole('button', { name: 'Delete' }).click()
      await page.waitForURL('**/audit-tool?deleted=1')
      expect(await page.getByRole('status').innerText()).to.equal('The report was deleted.')
      await close()
    })

    it(`computes a deflated Sharpe ratio and keeps what was entered, ${how}`, async () => {
      const { page, close } = await open(CALCULATOR)
      await page.getByLabel('Annual Sharpe ratio').fill('1.5')
      await page.getByLabel('Observations', { exact: true }).fill('504')
      await page.getByLabel('Trials', { exact: true }).fill('20')
      await page.getByRole('button', { name: 'Compute' }).click()
      await page.waitForURL('**/*sharpe=1.5*')
      expect(await page.locator('.result').innerText()).to.match(/^0\.\d{4}$/)
      expect(new URL(page.url()).hash, 'jumps to the answer, which is below the form on a phone').to.equal(
        '#result-title',
      )
      expect(await page.getByLabel('Trials', { exact: true }).inputValue()).to.equal('20')
      await close()
    })

    it(`shows at its field what the calculator refuses, and keeps what was entered, ${how}`, async () => {
      const { page, close } = await open(CALCULATOR)
      const entered = { 'Annual Sharpe ratio': '1.5', Observations: '504', Trials: '20', Skewness: '2' }
      for (const [label, text] of Object.entries(entered)) await page.getByLabel(label, { exact: true }).fill(text)
      const kurtosis = page.getByLabel('Kurtosis (normal: 3)')
      await kurtosis.fill('4')
      await page.getByRole('button', { name: 'Compute' }).click()
      await page.waitForURL('**/*kurt=4*')
      expect(await page.getByRole('alert').innerText()).to.equal('Kurtosis (normal: 3)')
      expect(await kurtosis.getAttribute('aria-invalid')).to.equal('true')
      expect(await page.locator('.field', { has: kurtosis }).innerText()).to.contain(
        'Must be at least skew² + 1, here 5.',
      )
      for (const [label, text] of Object.entries(entered))
        expect(await page.getByLabel(label, { exact: true }).inputValue(), label).to.equal(text)
      await kurtosis.fill('5')
      await page.getByRole('button', { name: 'Compute' }).click()
      await page.locator('.result').waitFor()
      await close()
    })

    it(`adds an address to the founding list and says thank you, ${how}`, async () => {
      const { page, close } = await open('/pricing')
      await page.getByLabel('E-mail address').fill(`${how.replaceAll(' ', '.')}@example.org`)
      await page.getByRole('button', { name: 'list' }).click()
      await page.waitForURL('**/pricing?ok=1')
      expect(await page.getByRole('status').innerText()).to.contain('Thank you')
      await close()
    })

    it(`rejects an invalid e-mail address, ${how}`, async () => {
      const { page, close } = await open('/pricing')
      // Browsers accept this address, the gateway does not.
      await page.getByLabel('E-mail address').fill('ada@example')
      await page.getByRole('button', { name: 'list' }).click()
      await page.waitForURL('**/pricing?err=validation_failed')
      expect(await page.getByRole('alert').innerText()).to.contain('Please check it and send it again')
      await close()
    })

    it(`removes an address from the founding list with the link in an e-mail, ${how}`, async () => {
      const { page, close } = await open('/founding/leave/AAAAAAAAAAAAAAAAAAAAAAAA')
      await page.getByRole('button', { name: 'Delete my address' }).click()
      await page.getByRole('heading', { name: 'Your address was deleted' }).waitFor()
      await close()
    })

    it(`verifies a receipt, ${how}`, async () => {
      const { pages } = running()
      const receipt = new URLSearchParams(pages.find(({ name }) => name === 'receipt-valid')?.path.split('?')[1])
      const { page, close } = await open('/receipt')
      await page.getByLabel('Signed receipt').fill(receipt.get('jws') ?? '')
      await page.getByRole('button', { name: 'Check' }).click()
      await page.waitForURL('**/receipt?jws=*')
      expect(await page.getByRole('status').innerText()).to.contain('Valid')
      await close()
    })
  }

  for (const name of ['Round trips', 'The same trades as fills'])
    it(`runs the sample “${name}” with its bars, and finds its impossible fill`, async () => {
      const { page, close } = await running().visit('/audit-tool')
      await page.locator('dl > div', { hasText: name }).getByRole('button', { name: 'Run this sample' }).click()
      await page.waitForURL('**/report/*')
      expect(await page.locator('main').innerText()).to.contain('of the fills that were judged could not have happened')
      await page.getByRole('button', { name: 'Delete' }).click()
      await page.waitForURL('**/audit-tool?deleted=1')
      await close()
    })

  const notALedger = { name: 'notes.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') }

  it('says next to it why a file is not a ledger, and keeps the input', async () => {
    const { page, close } = await running().visit('/audit-tool')
    await page.getByLabel('Trades, as CSV').setInputFiles(notALedger)
    await page.getByLabel('Variants tried before this one').fill('25')
    await page.getByRole('button', { name: 'Audit' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText())
      .to.contain('"a", "b"')
      .and.to.contain('entry_price')
    expect(new URL(page.url()).search).to.equal('')
    expect(await page.getByLabel('Variants tried before this one').inputValue()).to.equal('25')
    await page.getByLabel('Trades, as CSV').setInputFiles(join(LEDGERS, 'fills.csv'))
    await page.getByRole('button', { name: 'Audit' }).click()
    await page.waitForURL('**/report/*')
    await close()
  })

  it('shows a problem at the field that it names, in the fold around it, and no longer when it is sent again', async () => {
    const { page, close } = await running().visit('/audit-tool')
    await page.getByLabel('Trades, as CSV').setInputFiles(join(LEDGERS, 'round-trips.csv'))
    await page.getByText('Reference bars and symbol').click()
    const symbol = page.getByLabel('Symbol, if the file has no symbol column')
    await symbol.fill('-X')
    await page.getByText('Reference bars and symbol').click()
    await page.getByRole('button', { name: 'Audit' }).click()
    const problem = page.locator('.field', { has: symbol }).getByRole('alert')
    await problem.waitFor()
    expect(await page.evaluate('document.activeElement.id')).to.equal('symbol')
    expect(await symbol.getAttribute('aria-invalid')).to.equal('true')
    await symbol.fill('X')
    await page.getByRole('button', { name: 'Audit' }).click()
    await page.waitForURL('**/report/*')
    await close()
  })

  for (const javaScriptEnabled of [true, false])
    it(`shows the field to which a report links, ${javaScriptEnabled ? 'with' : 'without'} JavaScript`, async () => {
      const { page, close } = await running().visit('/report/lots', { javaScriptEnabled })
      await page.getByRole('link', { name: 'State the contract size' }).click()
      await page.waitForURL('**/audit-tool#contract_size')
      await page.getByLabel('Contract size').waitFor()
      expect(await page.getByLabel('Contract size').isVisible()).to.equal(true)
      await close()
    })

  it('has a field for every member of the request', async () => {
    const { page, close } = await running().visit('/audit-tool')
    const names = await page.evaluate<string[]>(`[...new Set(new FormData(document.querySelector('form')).keys())]`)
    const { $defs } = JSON.parse(
      readFileSync(resolve(import.meta.dirname, '../../schemas/audit.json'), 'utf8'),
    ) as Schema
    expect(names).to.have.members(Object.keys($defs.AuditRequest.properties))
    await close()
  })

  it('opens the fold with the field that a refused file needs, and says there what is wrong with it', async () => {
    const lines = ['Symbol,Pos,Amount,In when,In at,Out when,Out at', 'X,Short,10,2024-01-02,100,2024-01-03,98']
    const file = { name: 'odd.csv', mimeType: 'text/csv', buffer: Buffer.from(`${lines.join('\n')}\n`) }
    const { page, close } = await running().visit('/audit-tool')
    const [columns, send] = [page.getByLabel('What columns are'), page.getByRole('button', { name: 'Audit' })]
    await page.getByLabel('Trades, as CSV').setInputFiles(file)
    expect(await columns.isVisible()).to.equal(false)
    await send.click()
    await columns.waitFor()
    await columns.fill('In when=entry_tim')
    await send.click()
    const problem = page.locator('.field', { has: columns }).getByRole('alert')
    await problem.waitFor()
    expect(await problem.innerText()).to.contain('entry_tim')
    expect(await page.getByRole('alert').count(), 'of the file').to.equal(1)
    await columns.fill('In when=entry_time, In at=entry_price, Out when=exit_time, Out at=exit_price')
    await send.click()
    await page.waitForURL('**/report/*')
    expect(await page.locator('.read').innerText()).to.contain('All 7 columns used')
    await close()
  })

  it('does not upload a file that is too large', async () => {
    const { page, requests, close } = await running().visit('/audit-tool')
    // A file on disk, because the browser opens it without copying its content.
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-large-'))
    const large = join(folder, 'ticks.csv')
    writeFileSync(large, '')
    truncateSync(large, 40_000_001)
    await page.getByLabel('Trades, as CSV').setInputFiles(large)
    await page.getByRole('button', { name: 'Audit' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText()).to.equal('ticks.csv is larger than 40 MB.')
    expect(requests).not.to.include('/audit')
    await close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('shows an error for a file that is not a ledger, without JavaScript', async () => {
    const { page, close } = await running().visit('/audit-tool', { javaScriptEnabled: false })
    await page.getByLabel('Trades, as CSV').setInputFiles(notALedger)
    await page.getByRole('button', { name: 'Audit' }).click()
    await page.waitForURL('**/audit-tool?err=validation_failed')
    expect(await page.getByRole('alert').innerText()).to.contain('could not be read as a ledger')
    await close()
  })

  it('calls a free route without leaving the page', async () => {
    const { page, close } = await running().visit('/docs')
    await page.locator('form.call').getByRole('button', { name: 'Try it' }).click()
    const answer = page.getByRole('region', { name: 'Answer' })
    await answer.getByText('200 OK').waitFor()
    expect(await answer.innerText()).to.match(/"regime": "(STABLE|VOLATILE)"/)
    expect(new URL(page.url()).pathname).to.equal('/docs')
    await close()
  })

  it('calls a free route without JavaScript', async () => {
    const { page, close } = await running().visit('/docs', { javaScriptEnabled: false })
    await page.locator('form.call[action="/v1/regime/sample"] button').click()
    await page.waitForURL('**/v1/regime/sample*')
    expect(await page.content()).to.match(/STABLE|VOLATILE/)
    await close()
  })

  it('copies a whole block of code', async () => {
    const { page, close } = await running().visit('/')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const block = page.locator('figure.code').first()
    await block.getByRole('button', { name: 'Copy' }).click()
    await block.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).to.equal(await block.locator('pre').innerText())
    await page.context().clearPermissions()
    await close()
  })
}
