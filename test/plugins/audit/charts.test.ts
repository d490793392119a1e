import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { draw } from '../../../gateway/http/draw-chart.ts'
import { equityOf } from '../../../plugins/audit/figures/trade-returns.ts'
import { costSteps, equityCharts, placeOf, trialsChart } from '../../../plugins/audit-pages/report-charts.ts'
import type { AuditReport } from '../../../schemas/types.d.ts'
import { auditOf, findingsOf } from './audit-fixtures.ts'

const ledgers = resolve(import.meta.dirname, '../../../views/assets/ledgers')
const sample = (name: string): string => readFileSync(join(ledgers, name), 'utf8')

describe('the equity curve of a report', () => {
  const trades = (count: number) => Array.from({ length: count }, (_, i) => ({ exitTime: i * 1000 }) as never)

  it('is the running sum before and after costs, with the drawdown', () => {
    const { gross, net, drawdown } = equityOf(
      trades(3),
      Float64Array.of(0.2, -0.2, 0.2),
      Float64Array.of(0.1, -0.3, 0.1),
    )
    expect(gross).to.deep.equal([0.2, 0, 0.2])
    expect(net).to.deep.equal([0.1, -0.2, -0.1])
    expect(drawdown).to.deep.equal([0, -0.3, -0.2])
  })

  it('keeps the deepest drawdown if many trades become few steps', () => {
    const net = Float64Array.from({ length: 100_000 }, (_, i) => (i === 50_000 ? -5 : i === 50_001 ? 5 : 0.001))
    const { at, drawdown, net: kept } = equityOf(trades(net.length), net, net)
    expect(at).to.have.length(240)
    expect(Math.min(...drawdown)).to.equal(-5)
    expect(kept.at(-1)).to.be.closeTo(99.998, 1e-6)
  })
})

describe('the charts of a report', () => {
  let report: AuditReport
  before(async () => {
    report = (await auditOf(sample('round-trips.csv'), { bars: sample('bars.csv') })) as unknown as AuditReport
  })

  it('are drawn from sample ledgers that show the same impossible fill in every layout', async () => {
    expect(findingsOf(report as never)).to.deep.equal(['17 outside_range entry'])
    const fills = await auditOf(sample('fills.csv'), { bars: sample('bars.csv') })
    expect(fills.fills).to.include({ impossible: 1 })
    expect(fills.performance.gross_expectancy_bps).to.be.closeTo(report.performance.gross_expectancy_bps, 1e-6)
  })

  it('have cost steps that lead from gross to net return', () => {
    const steps = costSteps(report)
    const costs = steps.filter(({ total }) => !total).reduce((sum, { amount }) => sum + amount, 0)
    expect((steps[0]?.amount ?? 0) + costs).to.be.closeTo(steps.at(-1)?.amount ?? 0, 1e-9)
    expect(steps.at(-1)?.amount).to.equal(report.performance.net_expectancy_bps)
  })

  it('end the equity curve at the expectancy times the number of trades', () => {
    const [equity] = equityCharts(report)
    const after = equity?.series[1]?.points.at(-1)?.[1] ?? 0
    expect(after).to.be.closeTo((report.performance.net_expectancy_bps * report.performance.trades) / 1e4, 1e-5)
    expect(draw(equity!).paths).to.have.length(2)
  })

  it('list the deepest drawdown and the last exit in a table of limited length', () => {
    const at = Array.from({ length: 240 }, (_, day) => new Date(Date.UTC(2024, 0, 1 + day)).toISOString())
    const drawdown = at.map((_, index) => (index === 77 ? -0.4321 : 0))
    const [equity, drawdownChart] = equityCharts({
      ...report,
      equity: { at, gross: drawdown, net: drawdown, drawdown },
    })
    for (const chart of [equity, drawdownChart]) {
      expect(chart?.table?.rows.length).to.be.within(50, 70)
      expect(chart?.table?.rows.map((row) => row.at(-1))).to.include('-43.2%')
      expect(chart?.table?.rows.at(-1)?.[0]).to.equal('2024-08-27 00:00')
    }
  })

  it('show no made-up depth below a drawdown that is always zero', () => {
    const at = ['2024-01-01T00:00:00Z', '2024-01-02T00:00:00Z']
    const [, drawdown] = equityCharts({
      ...report,
      equity: { at, gross: [0.1, 0.2], net: [0.1, 0.2], drawdown: [0, 0] },
    })
    expect(draw(drawdown!).yTicks.map(({ label }) => label)).to.deep.equal(['0%'])
  })

  it('mark the stated number of trials on the curve', () => {
    const chart = trialsChart(report)
    expect(chart?.marks?.[0]?.at).to.deep.equal([10, report.overfitting.dsr])
    const line = chart?.series[0]?.points ?? []
    expect(line.every(([, value], index) => index === 0 || value <= (line[index - 1]?.[1] ?? 0))).to.equal(true)
  })

  it('are left out if a report has no figures for them', () => {
    const { equity: _, ...olderReport } = report
    expect(equityCharts(olderReport)).to.deep.equal([])
    expect(trialsChart({ ...report, overfitting: { ...report.overfitting, dsr: null } })).to.equal(null)
  })

  it('place a fill relative to the low and the high of its bar', () => {
    const position = placeOf({ price: 9, low: 10, high: 12 })
    expect(position?.price).to.be.below(position?.low ?? 0)
    expect(placeOf({ price: 11, low: 10, high: 12 })?.price).to.equal(50)
    expect(placeOf({ price: 11 })).to.equal(null)
  })
})
