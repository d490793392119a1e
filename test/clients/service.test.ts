import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { generatePrivateKey } from 'viem/accounts'
import { ask, buy, json } from '../support/agent.ts'
import { copyFirstStart, OWN_CATALOG } from '../support/first-start.ts'
import { openGateway, type TestGateway, until } from '../support/gateway.ts'
import { proves } from '../requirements.ts'
import type { Preflight } from '../../schemas/types.d.ts'

const root = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)
const DAY = 86_400_000
const MINUTE = 60_000

describe('our own catalog', () => {
  let shop: TestGateway
  let folder: string
  const get = async (path: string): Promise<Record<string, unknown>> => json(await ask(`${shop.url}${path}`))
  const buyJson = async (path: string): Promise<Record<string, unknown>> =>
    json(await buy(`${shop.url}${path}`, shop.wallet))
  const time = (value: unknown): number => Date.parse(String(value))

  before(async function () {
    this.timeout(300_000)
    folder = mkdtempSync(join(tmpdir(), 'service-'))
    const environment = { ...OWN_CATALOG, DATA_DIR: folder }
    await copyFirstStart(environment)
    shop = await openGateway(environment, { inMemory: false })
    // The minutes since the first start are classified first.
    await until(async () => 'brier' in (await get('/v1/stats')), 250)
  })
  after(async () => {
    await shop.close()
    rmSync(folder, { recursive: true })
  })

  it('has no disabled product', async () => {
    expect((await get('/health'))['withheld']).to.deep.equal([])
  })

  it('sells the regime of this minute, and gives the one of 24 hours ago for free', async () => {
    proves('regime-sample', 'regime-snapshot')
    const [current, sample] = [await buyJson('/v1/regime/current'), await get('/v1/regime/sample')]
    const now = shop.now().getTime()
    expect(now - time(current['as_of'])).to.be.within(0, 3 * MINUTE)
    expect(now - time(sample['as_of'])).to.be.within(DAY, DAY + 3 * MINUTE)
    expect(sample).to.include.keys('regime', 'confidence', 'position_scalar')
  })

  it('shows the free, delayed regime on its home page, and not the paid one', async () => {
    // A minute may begin between the calls: then the page shows what is free before or after it.
    const before = await get('/v1/regime/sample')
    const page = await (await ask(`${shop.url}/`, { headers: { accept: 'text/html' } })).text()
    const after = await get('/v1/regime/sample')
    const shown = [...page.matchAll(/datetime="([^"]+)"/g)].map(([, written]) => written)
    expect(shown).to.include.oneOf([before['as_of'], after['as_of']])
    expect(shown.filter((written) => time(written) > time(after['as_of']))).to.deep.equal([])
  })

  it('sells a regime snapshot for every minute since February 2026', async () => {
    proves('regime-since', 'regime-history')
    const first = await buyJson('/v1/regime/history?start=2026-02-01T00:00:00Z&limit=1000')
    const snapshots = first['snapshots'] as { as_of: string }[]
    expect(first['count']).to.equal(1000)
    expect(time(snapshots[0]?.as_of)).to.be.within(
      Date.parse('2026-02-01T00:00:00Z'),
      Date.parse('2026-02-03T00:00:00Z'),
    )
    const steps = snapshots.slice(1).map((snapshot, at) => time(snapshot.as_of) - time(snapshots[at]?.as_of))
    expect(new Set(steps)).to.deep.equal(new Set([MINUTE]))
    const next = await buyJson(`/v1/regime/history?start=${String(first['next_start'])}&limit=1`)
    expect(time((next['snapshots'] as { as_of: string }[])[0]?.as_of) - time(snapshots.at(-1)?.as_of)).to.equal(MINUTE)
  })

  it('checks an order of a market that has no regime in the sample data with that of BTC-USD, and says so', async () => {
    const body = { symbol: 'ETH-USD', side: 'sell', notional_usd: 50_000 }
    const response = await buy(`${shop.url}/v1/trade/preflight`, shop.wallet, 2, { method: 'POST', body })
    const { regime, checks } = (await response.json()) as Preflight
    expect(regime).to.include({ symbol: 'BTC-USD' })
    expect(checks[0]?.detail).to.match(/^The regime of ETH-USD is not collected here, so that of BTC-USD is used\. /)
  })

  it('publishes live statistics that grade the regime', async () => {
    proves('regime-stats')
    const stats = await get('/v1/stats')
    expect(stats['snapshots']).to.be.greaterThan(400_000)
    expect(stats['forward_vol_ratio']).to.be.greaterThan(1.5)
    expect(stats['persistence_1h']).to.be.within(0.9, 1)
    expect(stats['brier']).to.be.within(0, 0.25)
    expect(stats).to.include.keys('data_mode', 'start', 'end', 'last_hour_rule')
  })

  it('sells a history that a buyer grades with the published Brier score, by the programs of the guide', async function () {
    this.timeout(120_000)
    const data = mkdtempSync(join(tmpdir(), 'bought-'))
    const guide = readFileSync(join(root, 'docs/buying.md'), 'utf8')
    const programs = [...guide.matchAll(/^```(js|python)\n([\s\S]*?)^```/gm)].map(([, , program = '']) => program)
    const account = `privateKeyToAccount('${generatePrivateKey()}')`
    const before = `import { privateKeyToAccount } from 'viem/accounts'
      import { createBuyer } from ${JSON.stringify(join(root, 'gateway/client/buyer.ts'))}
      const [data, base_url] = ${JSON.stringify([data, shop.url])}
      const buyer = createBuyer({ account: ${account}, limits: { perCall: 20_000n, perDay: 1_000_000n } })\n`
    try {
      const node = ['--import', 'tsx/esm', '--input-type=module', '--eval', before + programs[1]!]
      await run(process.execPath, node, { cwd: root })
      const { stdout } = await run('python3', ['-c', programs[2]!, data])
      const [, rows, graded, published] =
        /^(\d+) rows, Brier score (\d\.\d{4}), published (\d\.\d{4})\n$/.exec(stdout) ?? []
      expect(Number(rows)).to.be.above(90 * 1440 - 120)
      expect(graded).to.equal(published)
    } finally {
      rmSync(data, { recursive: true })
    }
  })
})
