import { expect } from 'chai'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { calculate } from '../../../plugins/calculator/track-record.ts'
import { proves } from '../../requirements.ts'
import { json } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'

const root = resolve(import.meta.dirname, '../../..')

// Bailey and López de Prado, "The deflated Sharpe ratio" (2014), section "A numerical example".
const PAPER = { sharpe: 2.5, days: 1250, skew: -3, kurt: 10, srVariance: 0.5, periodsPerYear: 250 }

describe('the deflated Sharpe ratio', () => {
  const cases = [
    { trials: 10, sr0: 1.1134, dsr: 0.9939 },
    { trials: 46, sr0: 1.5869, dsr: 0.9505 },
    { trials: 88, sr0: 1.7574, dsr: 0.9102 },
    { trials: 88, sr0: 1.7574, dsr: 0.9505, skew: 0, kurt: 3 },
    { trials: 100, sr0: 1.7894, dsr: 0.9004 },
    { trials: 1000, sr0: 2.3017, dsr: 0.6399 },
  ]
  for (const { sr0, dsr, ...change } of cases)
    it(`is ${dsr} in the example of the paper with ${change.trials} trials${change.kurt ? ' and normal returns' : ''}`, () => {
      const result = calculate({ ...PAPER, ...change })
      expect(result.dsr).to.be.closeTo(dsr, 5e-5)
      expect(result.sr0).to.be.closeTo(sr0, 5e-5)
    })

  it('equals the probabilistic Sharpe ratio for a single trial', () => {
    const { dsr, psr, sr0, minBacktestYears } = calculate({ ...PAPER, trials: 1 })
    expect(dsr).to.equal(psr)
    expect([sr0, minBacktestYears]).to.deep.equal([0, 0])
  })

  it('uses the sampling variance and 252 days per year by default', () => {
    const plain = calculate({ sharpe: 1.5, days: 504, trials: 20 })
    expect(plain).to.deep.equal(
      calculate({ sharpe: 1.5, days: 504, trials: 20, skew: 0, kurt: 3, srVariance: 252 / 503, periodsPerYear: 252 }),
    )
  })

  it('needs five years for a Sharpe ratio of 1 and 45 trials', () => {
    // Bailey, Borwein, López de Prado and Zhu (2014).
    expect(calculate({ sharpe: 1, days: 1260, trials: 45 }).minBacktestYears).to.be.closeTo(4.998, 1e-3)
  })

  it('has no sufficient track record for a negative Sharpe ratio', () => {
    expect(calculate({ sharpe: -1, days: 500, trials: 5 }).minTrackDays).to.equal(Infinity)
  })
})

describe('the page of the calculator', () => {
  const folder = mkdtempSync(join(tmpdir(), 'calculator-'))
  let gateway: TestGateway
  before(async () => {
    for (const name of ['service', 'calculator'])
      cpSync(join(root, 'catalog', `${name}.json`), join(folder, `${name}.json`))
    gateway = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })
  const visit = (query: string): Promise<Response> => fetch(`${gateway.url}/tools/deflated-sharpe-calculator?${query}`)
  const page = async (query: string): Promise<string> => {
    const response = await visit(query)
    expect(response.status, query).to.equal(200)
    expect(response.headers.get('content-type')).to.contain('text/html')
    return response.text()
  }

  it('shows the figures of the paper', async () => {
    proves('calculator')
    const paper = 'sharpe=2.5&days=1250&sr_variance=0.5&periods_per_year=250'
    expect(await page(`${paper}&trials=100&skew=-3&kurt=10`))
      .to.contain('0.9004')
      .and.to.contain('1.7894')
    expect(await page(`${paper}&trials=46&skew=-3&kurt=10`)).to.contain('0.9505')
    expect(await page(`${paper}&trials=88`)).to.contain('0.9505')
  })

  it('is an empty form at first, and then names the numbers that are missing', async () => {
    const empty = await page('')
    expect(empty).to.contain('<form').and.not.to.contain('id="result-title"')
    expect(empty)
      .to.match(/name="kurt" value="3"/)
      .and.to.match(/name="skew" value="0"/)
    expect(await page('sharpe=1')).to.contain('Please fill in: Observations, Trials.')
  })

  it('uses the default for an empty field', async () => {
    const full = await page('sharpe=1.5&days=504&trials=20&skew=0&kurt=3')
    expect(await page('sharpe=1.5&days=504&trials=20&skew=&kurt=&sr_variance=&periods_per_year=')).to.equal(full)
  })

  const invalidQueries: Readonly<Record<string, string>> = {
    'sharpe=high': 'sharpe',
    'sharpe=NaN&days=10&trials=2': 'sharpe',
    'sharpe=1e400&days=10&trials=2': 'sharpe',
    'sharpe=Infinity': 'sharpe',
    'sharpe=1&days=1&trials=2': 'days',
    'sharpe=1&days=10.5&trials=2': 'days',
    'sharpe=1&days=10&trials=0': 'trials',
    'sharpe=1&days=10&trials=1e3x': 'trials',
    'sharpe=1&days=10&trials=2&skew=2&kurt=4.9': 'kurt',
    'kurt=0.5': 'kurt',
    'sharpe=1&days=10&trials=2&sr_variance=-1': 'sr_variance',
    'sharpe=1&days=10&trials=2&periods_per_year=0': 'periods_per_year',
    'sharp=1': 'sharp',
  }
  for (const [query, field] of Object.entries(invalidQueries))
    it(`answers 422 to the query ${query} and names the field ${field}`, async () => {
      const response = await visit(query)
      expect(response.status).to.equal(422)
      const [item] = (await json(response))['detail'] as { loc: unknown; msg: string; type: string }[]
      expect(item?.loc).to.deep.equal(['query', field])
      expect(item).to.include.keys('msg', 'type')
    })
})
