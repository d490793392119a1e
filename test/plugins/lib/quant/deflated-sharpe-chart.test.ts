import { expect } from 'chai'
import { draw } from '../../../../gateway/http/draw-chart.ts'
import { deflatedSharpeChart } from '../../../../plugins/lib/quant/deflated-sharpe-chart.ts'

// Bailey and López de Prado, "The deflated Sharpe ratio" (2014), section "A numerical example".
const sample = { sharpe: 2.5 / Math.sqrt(250), observations: 1250, skewness: -3, kurtosis: 10 }
const variance = 0.5 / 250

describe('the chart of the deflated Sharpe ratio', () => {
  it('marks the stated number of trials on the curve', () => {
    const chart = deflatedSharpeChart({ sample, variance, trials: 100, dsr: 0.9004 })
    expect(chart.marks).to.deep.equal([{ at: [100, 0.9004], label: '100 trials: 90.0%' }])
    const [, value] = chart.series[0].points.find(([trials]) => trials === 100) ?? []
    expect(value).to.be.closeTo(0.9004, 5e-5)
    expect(chart.table.rows).to.deep.include(['100', '0.9004'])
  })

  it('covers more than the stated number of trials', () => {
    for (const trials of [1, 9_999, 10_000, 250_000]) {
      const [, maximum] = deflatedSharpeChart({ sample, variance, trials, dsr: 0.5 }).x.domain
      expect(maximum, String(trials)).to.be.at.least(10_000).and.above(trials)
    }
  })

  it('never shows a probability of 100%', () => {
    const { marks, description } = deflatedSharpeChart({ sample, variance, trials: 1, dsr: 0.99999 })
    expect(marks[0].label).to.equal('1 trial: > 99.9%')
    expect(description).not.to.contain('100.0%')
  })

  it('can be rendered by the gateway', () => {
    expect(draw(deflatedSharpeChart({ sample, variance, trials: 46, dsr: 0.95 })).paths).to.have.length(2)
  })
})
