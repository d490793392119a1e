import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { SymbolList } from '../../../schemas/types.d.ts'
import { ask, json } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'

const root = resolve(import.meta.dirname, '../../..')

describe('GET /v1/symbols of a sample without a regime', () => {
  const folder = mkdtempSync(join(tmpdir(), 'symbols-'))
  let gateway: TestGateway
  before(async () => {
    for (const name of ['service.json', 'market.json', 'symbols.json'])
      cpSync(join(root, 'catalog', name), join(folder, name))
    gateway = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  it('lists the symbols of the sample for free, with no venue and nothing missing', async () => {
    const response = await ask(`${gateway.url}/v1/symbols`)
    expect(response.status).to.equal(200)
    const { count, data_mode, symbols } = (await json(response)) as unknown as SymbolList
    expect(data_mode).to.equal('sample')
    const names = symbols.map(({ symbol }) => symbol)
    expect(names.slice(0, 4)).to.deep.equal(['BTC-USD', 'ETH-USD', 'SOL-USD', 'XRP-USD'])
    expect(names).to.include('AAPL').and.not.include('DOGE-USD')
    expect(count).to.equal(names.length)
    for (const { status, bars, venues, regime } of symbols) {
      expect({ status, venues, regime }).to.deep.equal({ status: 'ok', venues: [], regime: null })
      expect(bars).to.include({ interval_seconds: 60, since: '2025-08-05T00:00:00Z', coverage: null })
    }
  })
})
