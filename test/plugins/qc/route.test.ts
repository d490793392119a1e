import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { proves } from '../../requirements.ts'
import { buy, json, offer, payment, receipt, send } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { randomWalk } from './random-walk.ts'

const root = resolve(import.meta.dirname, '../../..')

describe('POST /v1/bars/qc', () => {
  const folder = mkdtempSync(join(tmpdir(), 'qc-'))
  const bars = randomWalk({ count: 500 }).map((bar, i) => (i === 200 ? { ...bar, h: bar.h * 1.05 } : bar))
  let gateway: TestGateway
  let url: string
  before(async () => {
    for (const name of ['service.json', 'qc.json']) cpSync(join(root, 'catalog', name), join(folder, name))
    gateway = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
    url = `${gateway.url}/v1/bars/qc`
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  it('asks for 0.05 and answers a paid call with the report', async () => {
    proves('bars-qc')
    const { response, v1 } = await offer(url, { method: 'POST', body: { bars } })
    expect(response.status).to.equal(402)
    expect(v1.accepts[0]).to.include({ maxAmountRequired: '50000' })
    const paid = await buy(url, gateway.wallet, 2, { method: 'POST', body: { symbol: 'WALK', bars } })
    expect(paid.status).to.equal(200)
    expect(receipt(paid)).to.include({ success: true })
    const report = await json(paid)
    expect(report).to.include({ symbol: 'WALK', bars: 500, model: 'qc/1' })
    expect(report['by_code']).to.deep.equal({ bad_print_high: 1 })
  })

  it('accepts a bare array and a table', async () => {
    const rows = bars.map(({ t, o, h, l, c, v }) => [t, o, h, l, c, v])
    for (const body of [bars, rows, { columns: ['t', 'o', 'h', 'l', 'c', 'v'], rows }]) {
      const response = await buy(url, gateway.wallet, 1, { method: 'POST', body })
      expect(response.status).to.equal(200)
      expect((await json(response))['by_code']).to.deep.equal({ bad_print_high: 1 })
    }
  })

  it('accepts a CSV file as the body, in a form and as text in JSON', async () => {
    const csv = [
      '<DATE>;<TIME>;<CLOSE>;<LOW>;<HIGH>;<OPEN>',
      ...bars.map(({ t, o, h, l, c }) => {
        const [date = '', time = ''] = new Date(t * 1000).toISOString().slice(0, 19).split('T')
        return [date.replaceAll('-', '.'), time, c, l, h, o].join(';')
      }),
    ].join('\n')
    const form = new FormData()
    form.set('file', new Blob([csv], { type: 'text/csv' }), 'bars.csv')
    form.set('symbol', 'WALK')
    form.set('repair', 'true')
    const header = () => payment(url, gateway.wallet, 2, { method: 'POST' })
    const sent: readonly RequestInit[] = [
      { body: csv, headers: { 'content-type': 'text/csv', 'payment-signature': await header() } },
      { body: form, headers: { 'payment-signature': await header() } },
      {
        body: JSON.stringify({ file: csv }),
        headers: { 'content-type': 'application/json', 'payment-signature': await header() },
      },
    ]
    for (const request of sent) {
      const response = await fetch(url, { method: 'POST', ...request })
      expect(response.status).to.equal(200)
      const report = await json(response)
      expect(report).to.deep.include({ bars: 500, by_code: { bad_print_high: 1 } })
      const { columns } = report['reading'] as { columns: readonly { used_as: string }[] }
      expect(columns.map(({ used_as }) => used_as)).to.deep.equal(['time', 'clock', 'close', 'low', 'high', 'open'])
      const repaired = report['repaired'] as { rows: unknown[]; changes: { index: number }[] } | undefined
      expect(repaired?.changes.map(({ index }) => index)).to.deep.equal(request.body === form ? [200] : undefined)
    }
  })

  it('accepts arrays in the order of KuCoin, and names the order', async () => {
    const body = bars.map(({ t, o, h, l, c, v }) => [t, o, c, h, l, v].map(String))
    const response = await buy(url, gateway.wallet, 2, { method: 'POST', body })
    expect(response.status).to.equal(200)
    const report = await json(response)
    expect(report['by_code']).to.deep.equal({ bad_print_high: 1 })
    expect(JSON.stringify(report['reading'])).to.contain('were read as time, open, close, high, low, volume')
  })

  const shuffled = bars.map(({ t, o, h, l, c }, i) => (i % 2 ? [t, h, l, o, c] : [t, l, h, c, o]))
  const invalidRequests: Record<string, { body: unknown; loc: (string | number)[] }> = {
    'a request with two bars': { body: { bars: bars.slice(0, 2) }, loc: ['body', 'bars'] },
    'a request without bars': { body: {}, loc: ['body', 'bars'] },
    'a text instead of bars': { body: { bars: 'many' }, loc: ['body', 'bars'] },
    'a row without a time': {
      body: { bars: bars.with(7, { ...bars[7]!, t: null as never }) },
      loc: ['body', 'bars', 7, 't'],
    },
    'a row that is a number': { body: bars.with(7, 7 as never), loc: ['body', 7] },
    'an unknown field': { body: { bars, side: 'buy' }, loc: ['body', 'side'] },
    'an interval of less than a millisecond': { body: { bars, interval: 1e-320 }, loc: ['body', 'interval'] },
    'an unknown session': { body: { bars, session: 'moon' }, loc: ['body', 'session'] },
    'an unknown time zone': { body: { bars, timezone: 'Mars/Olympus' }, loc: ['body', 'timezone'] },
    'arrays in no order of prices': { body: shuffled, loc: ['body'] },
    'a price whose comma may be a decimal mark': {
      body: { bars: bars.map((bar) => ({ ...bar, h: '67,000' })) },
      loc: ['body', 'bars', 0, 'h'],
    },
    'a file without prices': { body: { file: 'date,bid\n2024-01-01,5\n' }, loc: ['body', 'file', 'header'] },
    '50,001 bars': { body: Array.from({ length: 50_001 }, () => 0), loc: ['body'] },
  }
  for (const [request, { body, loc }] of Object.entries(invalidRequests))
    it(`answers 422 to ${request}, says where the error is and charges nothing`, async () => {
      const header = await payment(url, gateway.wallet, 2, { method: 'POST' })
      const response = await send(url, header, 2, { method: 'POST', body })
      expect(response.status).to.equal(422)
      expect(((await json(response))['detail'] as { loc: unknown }[])[0]?.loc).to.deep.equal(loc)
      const paid = await send(url, header, 2, { method: 'POST', body: { bars } })
      expect(paid.status, 'the payment is still good').to.equal(200)
    })

  it('answers 422 to a number that is too large, and names the row', async () => {
    const header = await payment(url, gateway.wallet, 2, { method: 'POST' })
    const text = JSON.stringify({ bars }).replace(/"h":[\d.]+/, '"h":1e400')
    const headers = { 'content-type': 'application/json', 'payment-signature': header }
    const response = await fetch(url, { method: 'POST', body: text, headers })
    expect(response.status).to.equal(422)
    expect(((await json(response))['detail'] as { loc: unknown }[])[0]?.loc).to.deep.equal(['body', 'bars', 0, 'h'])
  })

  it('answers 413 to a body of more than 16 MB', async () => {
    const header = await payment(url, gateway.wallet, 2, { method: 'POST' })
    const response = await send(url, header, 2, { method: 'POST', body: { bars: ['x'.repeat(16_000_000)] } })
    expect(response.status).to.equal(413)
  })

  it('is offered over MCP as the tool check_bar_quality', async () => {
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`)))
    const tool = (await client.listTools()).tools.find(({ name }) => name === 'check_bar_quality')
    expect(tool?.inputSchema.properties).to.include.keys(
      'symbol',
      'interval',
      'bars',
      'columns',
      'rows',
      'payment_signature',
    )
    const signature = await payment(url, gateway.wallet, 2, { method: 'POST' })
    const answer = await client.callTool({
      name: 'check_bar_quality',
      arguments: { bars, payment_signature: signature },
    })
    expect(answer.isError ?? false).to.equal(false)
    expect((answer.structuredContent as { by_code: unknown }).by_code).to.deep.equal({ bad_print_high: 1 })
    await client.close()
  })
})
