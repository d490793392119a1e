import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { reportPage } from '../../../plugins/audit-pages/report-page.ts'
import type { AuditReport } from '../../../schemas/types.d.ts'
import { summaryOf } from '../../../plugins/audit/audit.ts'
import { auditOf } from '../audit/audit-fixtures.ts'

const ledgers = resolve(import.meta.dirname, '../../../views/assets/ledgers')
const sample = (name: string): string => readFileSync(join(ledgers, name), 'utf8')

describe('the report page', () => {
  const pageOf = async (fields: object) =>
    reportPage((await auditOf(sample('round-trips.csv'), fields)) as unknown as AuditReport)
  const impossible = ({ key }: ReturnType<typeof reportPage>) => key.find(({ label }) => label === 'Impossible fills')

  it('summarises what was judged in one line', async () => {
    const { judged } = await pageOf({ bars: sample('bars.csv') })
    expect(judged).to.match(/^\d+ trades in 1 symbol, \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d$/)
  })

  it('shows the number of impossible fills without a caution if all fills were checked', async () => {
    const page = await pageOf({ bars: sample('bars.csv') })
    expect(impossible(page)?.figure).to.equal('1')
    expect(page.caution).to.equal(null)
  })

  it('shows "unknown" if no fill was checked', async () => {
    const page = await pageOf({})
    expect(impossible(page)?.figure).to.equal('unknown')
    expect(page.caution).to.contain('it is unknown')
    expect(page.unchecked.map(({ name, meaning }) => [name, meaning])).to.deep.include([
      'outside range',
      'the price lies between the low and the high of its bar',
    ])
  })

  it('aligns the prices of findings and shows units of basis points', async () => {
    const { findings } = await pageOf({ bars: sample('bars.csv') })
    const [{ price, low, high, figures } = {}] = findings
    expect([price, low, high].every((text) => /^\d+\.\d\d$/.test(text ?? ''))).to.equal(true)
    expect(figures?.join()).to.match(/excess \d+\.\d bps/)
  })

  it('shows the first findings, errors before warnings, and the total number', async () => {
    const { fills, ...rest } = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const findings = Array.from({ length: 1000 }, (_, row) => ({
      row,
      code: 'off_tick',
      severity: row < 990 ? 'warning' : 'error',
    }))
    const page = reportPage({ ...rest, fills: { ...fills, findings: findings as unknown as typeof fills.findings } })
    expect(page.found).to.equal(1000)
    expect(page.findings.map(({ row }) => row).slice(0, 11)).to.deep.equal(
      [...Array(10).keys()].map((n) => 990 + n).concat(0),
    )
    expect(page.findings).to.have.lengthOf.below(60)
  })

  it('limits the number of warnings', async () => {
    const report = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const { warnings } = reportPage({
      ...report,
      warnings: Array.from({ length: 1000 }, (_, symbol) => `symbol_${symbol}`),
    })
    expect(warnings).to.have.length(13)
    expect(warnings.at(-1)).to.equal('The JSON report has 988 more warnings.')
  })

  it('writes basis points in one format, in its figures and in the summary', async () => {
    const report = (await auditOf(sample('round-trips.csv'), { preset: 'zero' })) as unknown as AuditReport
    const figures = { ...report.performance, net_expectancy_bps: 2549.33, gross_expectancy_bps: -2549.33 }
    const page = reportPage({ ...report, performance: figures })
    expect(page.key[0]?.figure).to.equal('2,549.3 bps')
    expect(page.performance.map(({ figure }) => figure)).to.include('-2,549.3 bps')
    expect(summaryOf({ ...report, verdict: 'unproven', performance: figures } as never)).to.contain(
      ' 2,549.3 bps a trade',
    )
  })

  it('leaves out the note of a figure that is unknown', async () => {
    const report = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const lo = (sharpe: number | null) =>
      reportPage({ ...report, performance: { ...report.performance, sharpe_lo: sharpe } }).performance.find(
        ({ label }) => label.startsWith('Sharpe ratio'),
      )
    expect(lo(4.39)).to.include({ figure: '4.39', note: 'Lo 2002' })
    expect(lo(null)).to.include({ figure: '–' }).and.not.to.have.property('note')
  })

  it('never shows a probability of 100%', async () => {
    const report = (await auditOf(sample('round-trips.csv'), {})) as unknown as AuditReport
    const page = reportPage({ ...report, overfitting: { ...report.overfitting, dsr: 0.99999, psr: 0.00001 } })
    expect(page.key.map(({ figure }) => figure)).to.include('> 99.9%')
    expect(page.overfitting.map(({ figure }) => figure)).to.include('< 0.1%')
  })
})
