/** Puts script into every input of the service. None of it may run or become markup. */
import { request } from 'node:http'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import type { Service } from './service.ts'

/** Breaks out of as many kinds of markup as possible. */
const [MARKUP_INJECTION, SCRIPT_URL] = [
  `"'></script></title><img src=x onerror=breach()><script>breach()</script><svg onload=breach()>\${breach()}{{breach()}}`,
  `javascript:breach()//`,
]
const CALCULATOR = ['sharpe', 'days', 'trials', 'skew', 'kurt', 'sr_variance', 'periods_per_year']
/** Records that injected script ran. */
const BREACH_DETECTOR = `window.breach = () => { window.breached = true }; window.alert = window.breach`

/** Elements that exist only if an input became markup. */
const INJECTED_ELEMENTS = `[...document.querySelectorAll('img, svg[onload], [onerror], [href^="javascript:" i], [action^="javascript:" i],' +
  ' script:not([src]):not([type="application/ld+json"])')].map((element) => element.outerHTML.slice(0, 120))`

export function hostileInput(running: () => Service): void {
  /** Asserts that the open page treats the input as text. */
  async function assertHarmless(page: Page, where: string): Promise<void> {
    expect(await page.evaluate('window.breached'), where).to.equal(undefined)
    expect(await page.evaluate(INJECTED_ELEMENTS), where).to.deep.equal([])
  }

  /** Opens a browser tab that notices when injected script runs. */
  async function openWithDetector() {
    const opened = await running().open('')
    await opened.page.addInitScript(BREACH_DETECTOR)
    opened.page.on('dialog', (dialog) => {
      opened.consoleErrors.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    return opened
  }

  it('is shown as text in parameters, in their names and in every part of a path', async () => {
    const { url } = running()
    const { page, consoleErrors, close } = await openWithDetector()
    for (const text of [MARKUP_INJECTION, SCRIPT_URL]) {
      const encoded = encodeURIComponent(text)
      const addresses = [
        ...CALCULATOR.map((name) => `/tools/deflated-sharpe-calculator?sharpe=1&${name}=`),
        '/?err=',
        '/pricing?err=',
        '/pricing?ok=',
        '/audit-tool?err=',
        '/audit-tool?deleted=',
        '/receipt?jws=',
        '/',
        '/docs/',
        '/report/',
        '/founding/leave/',
        '/v1/potus/event/',
        '/v1/prices/history?limit=',
        '/assets/',
        '/methodology?',
        '/v1/regime/sample?',
        '/nowhere?a=1#',
      ].map((address) => address + encoded)
      for (const address of addresses) {
        await page.goto(url + address)
        await assertHarmless(page, address)
      }
    }
    expect(consoleErrors).to.deep.equal([])
    await close()
  })

  it('in a header never appears on a page', async () => {
    const { url } = running()
    const names = ['accept-language', 'referer', 'user-agent', 'origin', 'forwarded', 'via', 'cookie', 'x-payment']
    const forwarded = ['for', 'host', 'proto', 'prefix', 'port', 'server'].map((name) => `x-forwarded-${name}`)
    const headers = Object.fromEntries(
      [...names, ...forwarded, 'x-service-token'].map((name) => [name, MARKUP_INJECTION]),
    )
    for (const path of ['/', '/nowhere', '/v1/regime/current', '/pricing?ok=many', '/docs'])
      for (const host of [new URL(url).host, 'breach.example']) {
        const html = await responseText(new URL(path, url), { ...headers, host, accept: 'text/html' })
        expect(html, path).to.contain('<html').and.not.to.contain('breach')
      }
  })

  it('is shown as text in every cell and name of a ledger, on the report page and in its JSON', async () => {
    const { url } = running()
    const cell = `"${MARKUP_INJECTION.replaceAll('"', '""')}"`
    const rows = [1, 2, 3].map((day) => `${cell},long,1,2024-01-0${day},9,2024-01-0${day + 1},8,${cell},${cell}`)
    const ledger = ['symbol,side,qty,entry_time,entry_price,exit_time,exit_price,trial', ...rows]
    const withNamedColumn = [`symbol,side,qty,entry_time,entry_price,exit_time,exit_price,trial,${cell}`, ...rows]
    const bars = ['symbol,date,open,high,low,close', ...[1, 2, 3, 4].map((day) => `${cell},2024-01-0${day},1,1,1,1`)]
    const { page, consoleErrors, close } = await openWithDetector()
    for (const [index, file] of [
      ledger,
      withNamedColumn,
      [...withNamedColumn, `${cell},${cell},${cell},${cell},${cell}`],
    ].entries()) {
      const form = new FormData()
      form.set('file', new Blob([file.join('\n')], { type: MARKUP_INJECTION.slice(0, 20) }), MARKUP_INJECTION)
      form.set('bars', new Blob([bars.join('\n')]), MARKUP_INJECTION)
      const answer = await fetch(`${url}/audit`, { method: 'POST', body: form })
      const { report_url: path } = (await answer.json()) as { report_url?: string }
      if (path === undefined) {
        expect(answer.status, `ledger ${index}`).to.equal(422)
        continue
      }
      await page.goto(url + path)
      await assertHarmless(page, `ledger ${index}`)
      expect(await page.locator('main').innerText()).to.contain('<img src=x')
      const download = await fetch(`${url}${path}/download`)
      expect(download.headers.get('content-type')).to.contain('application/json')
      expect(download.headers.get('x-content-type-options')).to.equal('nosniff')
      expect(await download.json()).to.be.an('object')
    }
    expect(consoleErrors).to.deep.equal([])
    await close()
  })

  it('is refused or stored as plain text by the founding list', async () => {
    const { url } = running()
    for (const fields of [
      { email: MARKUP_INJECTION },
      { email: 'ada@example.org', source: MARKUP_INJECTION },
      { email: `"<script>"@example.org` },
    ]) {
      const answer = await fetch(`${url}/founding`, { method: 'POST', body: new URLSearchParams(fields) })
      expect(answer.status).to.be.oneOf([200, 422])
      expect(answer.headers.get('content-type')).to.contain('application/json')
      expect(answer.headers.get('content-security-policy')).to.contain("default-src 'none'")
      expect(await answer.json()).to.be.an('object')
    }
  })

  it('could not run even as markup, because the content security policy allows nothing unsafe', async () => {
    const { pages, url } = running()
    for (const { name, path, headers } of pages) {
      const answer = await fetch(url + path, { headers: { accept: 'text/html', ...headers } })
      const policy = answer.headers.get('content-security-policy') ?? ''
      expect(policy, name).to.contain("default-src 'none'").and.to.contain("script-src 'self'")
      expect(policy, name).not.to.match(/unsafe|\*|data:(?!;)|https?:/)
      // An answer that nobody reads keeps its connection open.
      await answer.body?.cancel()
    }
  })
}

/** Returns the response text. Sends any header, because fetch and browsers forbid some. */
function responseText(
  { hostname, port, pathname, search }: URL,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ hostname, port, path: pathname + search, headers }, (answer) => {
      let text = ''
      answer.on('data', (chunk: Buffer) => (text += chunk.toString())).on('end', () => resolve(text))
    })
      .on('error', reject)
      .end()
  })
}
