import { expect } from 'chai'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gold, PLUGINS, SERVICE } from '../../../support/catalog.ts'
import { openGateway, type TestGateway } from '../../../support/gateway.ts'

const number = { type: 'number' }
const response = {
  type: 'object',
  properties: {
    parts: { type: 'object', additionalProperties: number },
    days: {
      type: 'array',
      items: {
        type: 'object',
        properties: { at: { type: 'string', format: 'date-time' }, price: number, low: number },
      },
    },
    page_url: { type: 'string' },
  },
}

describe('the drawing of an answer', () => {
  let folder: string
  let shop: TestGateway

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-drawing-'))
    const { getGold, getGoldColumns } = gold().operations
    const operations = {
      getGoldColumns,
      getDays: {
        ...getGold,
        handler: 'getGold',
        route: 'GET /v1/days',
        response,
        rows: 'days',
        chart: { title: 'Price', y: ['price', 'low'] },
      },
      getParts: {
        ...getGold,
        handler: 'getGold',
        route: 'GET /v1/parts',
        response,
        chart: { title: 'Cost', unit: 'bps', parts: 'parts' },
      },
    }
    mkdirSync(join(folder, 'catalog'))
    writeFileSync(join(folder, 'catalog/service.json'), JSON.stringify(SERVICE))
    writeFileSync(join(folder, 'catalog/gold.json'), JSON.stringify({ ...gold(), operations }))
    shop = await openGateway({ CATALOG_DIR: join(folder, 'catalog'), PLUGIN_DIRS: PLUGINS })
  })
  after(async () => {
    await shop.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function draw(operation: string, answer: unknown): Promise<string> {
    const headers = { 'content-type': 'application/json', accept: 'text/html' }
    const body = JSON.stringify(answer)
    const drawn = await fetch(`${shop.url}/docs/${operation}/drawing`, { method: 'POST', headers, body })
    expect(drawn.status).to.equal(200)
    return drawn.text()
  }

  const days = [1, 2, 3].map((day) => ({ at: `2026-03-0${day}T00:00:00Z`, price: day, low: day / 2, note: '<b>' }))

  it('is a chart of the columns that the catalog names, over time, and a table of the rows', async () => {
    const drawn = await draw('getDays', { days })
    expect(drawn).to.contain('<title id="chart-getDays-title">Price</title>').and.to.contain('3 rows')
    expect(drawn.match(/class="curve/g)).to.have.length(2)
    expect(drawn).to.contain('&lt;b&gt;').and.not.to.contain('<b>')
  })

  it('has no chart of a single point, and no table of no rows', async () => {
    expect(await draw('getDays', { days: days.slice(1, 2) }))
      .to.contain('1 row')
      .and.not.to.contain('<svg')
    expect((await draw('getDays', { days: [] })).trim()).to.equal('')
  })

  it('is the parts of a sum with their total', async () => {
    const drawn = await draw('getParts', { parts: { fee_bps: 2, spread_bps: 3, note: 'x' } })
    expect(drawn).to.match(/fee<.*2 bps.*spread<.*3 bps.*total<.*5 bps/)
  })

  it('links to pages of the service, and to nothing else', async () => {
    expect(await draw('getParts', { page_url: '/pricing' })).to.contain('href="/pricing"')
    for (const address of [
      'https://elsewhere.example/pricing',
      '//elsewhere.example',
      'javascript:alert(1)',
      '/nowhere',
    ])
      expect(await draw('getParts', { page_url: address }), address).not.to.contain('href')
  })

  it('is nothing for an answer of another form', async () => {
    for (const answer of [null, 1, 'text', [], {}, { parts: 3, days: 'none' }])
      expect((await draw('getParts', answer)).trim(), JSON.stringify(answer)).to.equal('')
  })

  it('is answered with 404 for an operation that does not exist', async () => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${shop.url}/docs/getNothing/drawing`, { method: 'POST', headers, body: '{}' })
    expect(answer.status).to.equal(404)
    await answer.text()
  })
})
