import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { Call, PluginContext } from 'tollgate/plugin'
import symbols from '../../../plugins/symbols/index.ts'
import type { ListedSymbol, SymbolList } from '../../../schemas/types.d.ts'
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

describe('the status of a symbol whose bars are fresh', () => {
  const NOW = Date.parse('2026-06-01T12:00:00Z')
  const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString()
  const venue = { live: true, backfill: true, failures: 0, reason: null, retry_at: null }

  /** @param regime what is stored of the regime */
  async function statusWith(regime: object): Promise<ListedSymbol['status']> {
    const answers: Readonly<Record<string, unknown>> = {
      getSymbols: { symbols: [{ symbol: 'BTC-USD', name: 'Bitcoin', aliases: [], session: 'continuous' }] },
      getMarketStatus: {
        ready: true,
        series: [{ interval_seconds: 60, first: NOW / 1000 - 86_400, last: NOW / 1000 - 60 }],
        venues: ['one', 'two'].map((name) => ({ ...venue, venue: name })),
      },
      getRegimeCoverage: { symbols: [{ symbol: 'BTC-USD', ...regime }] },
    }
    const context = { settings: {}, deployment: { data_mode: 'online' } } as unknown as PluginContext
    const { handlers } = await symbols.setup(context)
    const list = handlers['listSymbols'] as unknown as (call: Call) => Promise<SymbolList>
    const call = {
      ask: (operation: string) => Promise.resolve(answers[operation]),
      asOf: new Date(NOW),
      catalog: { operations: new Map([['getRegimeCoverage', {}]]) },
    }
    return (await list(call as unknown as Call)).symbols[0]!.status
  }

  for (const [complete, age, status] of [
    [true, 60, 'ok'],
    [true, 301, 'late'],
    [false, 60, 'filling'],
    [false, 301, 'filling'],
  ] as const)
    it(`is ${status} with ${complete ? 'the whole' : 'a part of the'} regime, the newest ${age} seconds old`, async () => {
      expect(await statusWith({ complete, newest: ago(age), since: ago(86_400), snapshots: 1_440 })).to.equal(status)
    })
})
