import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { proves } from '../../requirements.ts'
import { buy, json, offer, payment, receipt, send } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { barsText, makeDays, tradeLine, ROUND_TRIPS, makeTrades } from './audit-fixtures.ts'

const root = resolve(import.meta.dirname, '../../..')
const dailyBars = makeDays(200)
const ledger = makeTrades(dailyBars)
const impossibleTrade = { ...ledger[7]!, entryPrice: 500 }
const file = `${[ROUND_TRIPS, ...ledger.with(7, impossibleTrade).map(tradeLine)].join('\n')}\n`
const bars = barsText(dailyBars)
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

interface AuditResponse {
  readonly rid: string
  readonly report_url: string
  readonly verdict: string
  readonly fills: { readonly findings: readonly { readonly row: number; readonly code: string }[] }
}

describe('POST /v1/audit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'))
  let gateway: TestGateway
  let url: string
  before(async () => {
    for (const name of ['service', 'documents', 'audit', 'audit-pages', 'market', 'qc'])
      cpSync(join(root, 'catalog', `${name}.json`), join(folder, `${name}.json`))
    gateway = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
    url = `${gateway.url}/v1/audit`
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  const buyAudit = async (body: FormData | string, headers: Record<string, string> = {}): Promise<Response> => {
    const signature = await payment(url, gateway.wallet, 2, { method: 'POST' })
    return fetch(url, { method: 'POST', body, headers: { ...headers, 'payment-signature': signature } })
  }
  const form = (fields: Readonly<Record<string, string>>): FormData => {
    const parts = new FormData()
    parts.set('file', new Blob([file], { type: 'text/csv' }), 'ledger.csv')
    for (const [name, value] of Object.entries(fields)) parts.set(name, value)
    return parts
  }

  it('has the same price in every document', async () => {
    proves('audit-price')
    const read = async (path: string): Promise<string> => (await fetch(gateway.url + path)).text()
    expect(JSON.parse(await read('/pricing.json'))).to.have.nested.property('prices_usd.POST /v1/audit', 5)
    expect(JSON.parse(await read('/.well-known/x402'))).to.have.deep.nested.property('paid_endpoints', {
      'POST /v1/audit': '$5.00',
      'POST /v1/bars/qc': '$0.05',
    })
    expect(await read('/llms.txt')).to.match(/POST \/v1\/audit[^\n]*\$5\.00/)
  })

  it('asks for 5.00 and answers a paid call with the report', async () => {
    const { response, v1 } = await offer(url, { method: 'POST', body: { file } })
    expect(response.status).to.equal(402)
    expect(v1.accepts[0]).to.include({ maxAmountRequired: '5000000' })
    const paid = await buy(url, gateway.wallet, 2, { method: 'POST', body: { file, bars, preset: 'etf_liquid' } })
    expect(paid.status).to.equal(200)
    expect(receipt(paid)).to.include({ success: true })
    const report = (await json(paid)) as unknown as AuditResponse
    expect(report.fills.findings).to.have.length(1)
    expect(report.fills.findings[0]).to.include({ row: 7, code: 'outside_range' })
    expect(report).to.include({ verdict: 'reject', report_url: `/report/${report.rid}` })
    expect(report).to.have.nested.property('assumptions.cost_per_side_bps', 1.5)
  })

  it('gives the same report for a ledger in JSON, as text/csv and as a multipart file', async () => {
    const body = [
      await buyAudit(JSON.stringify({ file }), { 'content-type': 'application/json' }),
      await buyAudit(file, { 'content-type': 'text/csv' }),
      await buyAudit(form({ preset: '', n_trials: '' })),
    ]
    const reports = await Promise.all(body.map(async (answer) => (await answer.json()) as AuditResponse))
    const withoutIdentity = (report: AuditResponse): object => ({ ...report, rid: '', report_url: '', as_of: '' })
    for (const report of reports) expect(withoutIdentity(report)).to.deep.equal(withoutIdentity(reports[0]!))
    expect(new Set(reports.map(({ rid }) => rid)).size).to.equal(3)
  })

  const hostile: Readonly<Record<string, readonly [body: object, status: number, ...loc: (string | number)[]]>> = {
    'a request without a file': [{}, 422, 'body', 'file'],
    'a file that is a number': [{ file: 7 }, 422, 'body', 'file'],
    'an unknown preset': [{ file, preset: 'free' }, 422, 'body', 'preset'],
    'zero trials': [{ file, n_trials: 0 }, 422, 'body', 'n_trials'],
    'a fractional number of trials': [{ file, n_trials: 1.5 }, 422, 'body', 'n_trials'],
    'extra costs out of range': [{ file, extra_bps: -11 }, 422, 'body', 'extra_bps'],
    'an unknown field': [{ file, secret: 1 }, 422, 'body', 'secret'],
    'a formula as the symbol': [{ file, symbol: '=1+1' }, 422, 'body', 'symbol'],
    'NaN as a price': [
      { file: `${ROUND_TRIPS}\nX,long,1,2024-01-02,NaN,2024-01-03,1\n` },
      422,
      'body',
      'file',
      0,
      'entry_price',
    ],
    'a million rows': [{ file: `${ROUND_TRIPS}\n${'X,long,1,2024-01-02,1,2024-01-03,1\n'.repeat(1_000_000)}` }, 413],
  }
  for (const [request, [body, status, ...loc]] of Object.entries(hostile))
    it(`answers ${status} to ${request} and charges nothing`, async () => {
      const settled = gateway.settler.transfers.length
      const header = await payment(url, gateway.wallet, 2, { method: 'POST' })
      const response = await send(url, header, 2, { method: 'POST', body })
      expect(response.status).to.equal(status)
      const refusal = await json(response)
      if (loc.length > 0) expect((refusal['detail'] as { loc: unknown }[])[0]?.loc).to.deep.equal(loc)
      expect(gateway.settler.transfers.length).to.equal(settled)
    })

  it('answers 413 to a body of more than 40 MB', async () => {
    const response = await buyAudit('x'.repeat(42_000_001), { 'content-type': 'text/csv' })
    expect(response.status).to.equal(413)
  })

  it('lists the presets in the error for an unknown preset', async () => {
    const response = await buyAudit(JSON.stringify({ file, preset: 'free' }), { 'content-type': 'application/json' })
    expect(JSON.stringify(await response.json()))
      .to.contain('large_cap')
      .and.to.contain('zero')
  })

  it('is offered over MCP as the tool audit_backtest, with the CSV as a string', async () => {
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`)))
    const tool = (await client.listTools()).tools.find(({ name }) => name === 'audit_backtest')
    expect(tool?.inputSchema.properties?.['file']).to.include({ type: 'string' })
    expect(tool?.inputSchema.required).to.deep.equal(['file'])
    const signature = await payment(url, gateway.wallet, 2, { method: 'POST' })
    const answer = await client.callTool({
      name: 'audit_backtest',
      arguments: { file, bars, payment_signature: signature },
    })
    expect(answer.isError ?? false).to.equal(false)
    expect((answer.structuredContent as AuditResponse).fills.findings[0]).to.include({ code: 'outside_range' })
    await client.close()
  })

  describe('the web form', () => {
    const submit = (body: FormData, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(`${gateway.url}/audit`, { method: 'POST', body, headers, redirect: 'manual' })

    it('is free and answers programs with the verdict and the address of the report', async () => {
      proves('audit-form')
      const response = await submit(form({ preset: 'crypto_perp', n_trials: '25', extra_bps: '1.5' }))
      expect(response.status).to.equal(200)
      const body = await json(response)
      expect(body).to.have.all.keys('rid', 'report_url', 'verdict', 'reasons', 'summary')
      const page = await (await fetch(`${gateway.url}${String(body['report_url'])}`, { headers: BROWSER })).text()
      expect(page).to.contain('25 trials').and.to.contain('6.5 bps (crypto perp), 1.5 bps extra')
    })

    it('redirects a browser to a report that search engines do not index', async () => {
      const parts = form({})
      parts.set('bars', new Blob([bars]), 'bars.csv')
      const response = await submit(parts, BROWSER)
      expect(response.status).to.equal(303)
      const path = response.headers.get('location') ?? ''
      expect(path).to.match(/^\/report\/[\w-]{22,}$/)
      const page = await fetch(`${gateway.url}${path}`, { headers: BROWSER })
      expect(page.headers.get('x-robots-tag')).to.contain('noindex')
      expect(page.headers.get('cache-control')).to.contain('no-store')
      const html = await page.text()
      expect(html).to.contain('<meta name="robots" content="noindex').and.to.contain('<h1>Reject</h1>')
      expect(html.indexOf('Reject')).to.be.below(html.indexOf('outside range'))
    })

    it('escapes text from the ledger', async () => {
      const evil = '"<img src=x onerror=alert(1)>"'
      const parts = form({})
      parts.set('file', new Blob([`${ROUND_TRIPS}\n${evil},long,1,2024-01-02,9,2024-01-02,8\n`]), '<script>.csv')
      parts.set('bars', new Blob([`symbol,date,open,high,low,close\n${evil},2024-01-02,1,1,1,1\n`]), 'bars.csv')
      const { report_url: path } = await json(await submit(parts))
      const html = await (await fetch(`${gateway.url}${String(path)}`, { headers: BROWSER })).text()
      expect(html).to.contain('&lt;img src=x').and.not.to.contain('<img')
    })

    it('redirects a browser to the form with an error code if the file is not a ledger', async () => {
      const parts = form({})
      parts.set('file', new Blob(['a,b\n1,2\n']), 'x.csv')
      const response = await submit(parts, BROWSER)
      expect(response.headers.get('location')).to.equal('/audit-tool?err=validation_failed')
      const page = await (await fetch(`${gateway.url}/audit-tool?err=validation_failed`, { headers: BROWSER })).text()
      expect(page).to.contain('role="alert"').and.to.contain('could not be read as a ledger')
      expect(page).to.contain('<option value="large_cap">').and.to.contain('enctype="multipart/form-data"')
      const unknown = await (await fetch(`${gateway.url}/audit-tool?err=constructor`, { headers: BROWSER })).text()
      expect(unknown).to.contain('Something went wrong. Please try again in a minute.')
    })

    it('lets anyone who knows the address delete the report', async () => {
      const createReport = async (): Promise<string> =>
        `${gateway.url}${String((await json(await submit(form({}))))['report_url'])}`
      const [one, other] = [await createReport(), await createReport()]
      const deleted = await fetch(one, { method: 'DELETE' })
      expect(await json(deleted)).to.include({ deleted: true })
      const submitted = await fetch(`${other}/delete`, { method: 'POST', headers: BROWSER, redirect: 'manual' })
      expect([submitted.status, submitted.headers.get('location')]).to.deep.equal([303, '/audit-tool?deleted=1'])
      for (const address of [one, other]) expect((await fetch(address, { headers: BROWSER })).status).to.equal(404)
      expect((await fetch(one, { method: 'DELETE' })).status, 'again').to.equal(200)
    })

    it('shows a sample report', async () => {
      const html = await (await fetch(`${gateway.url}/report/sample`, { headers: BROWSER })).text()
      expect(html).to.contain('a few invented trades').and.not.to.contain('Delete this report')
    })

    it('does not say that it deleted the sample report, which stays', async () => {
      const response = await fetch(`${gateway.url}/report/sample`, { method: 'DELETE' })
      expect(response.status).to.equal(404)
      expect(await json(response))
        .to.have.property('message')
        .that.contains('cannot be deleted')
    })
  })
})
