import { expect } from 'chai'
import { stationaryBootstrap } from '../../../../plugins/lib/quant/bootstrap.ts'
import { autocorrelation, empiricalCdf, quantileSorted } from '../../../../plugins/lib/quant/descriptive-statistics.ts'
import { squareRootImpact } from '../../../../plugins/lib/quant/market-impact.ts'
import { bhy, bonferroni, sharpeOfPValue, sharpePValue, sidak } from '../../../../plugins/lib/quant/multiple-testing.ts'
import { normalCdf, normalQuantile } from '../../../../plugins/lib/quant/normal-distribution.ts'
import { centredMedian, median, neighbourMedian } from '../../../../plugins/lib/quant/rolling-median.ts'
import {
  bpsDecimals,
  roundBps,
  roundNamed,
  roundProbability,
  roundSignificant,
  roundTo,
} from '../../../../plugins/lib/quant/rounding.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'
import { minimumBacktest, minimumTrackRecord } from '../../../../plugins/lib/quant/sharpe-ratio.ts'
import { abdiRanaldoSpread, corwinSchultzSpread, rollSpread } from '../../../../plugins/lib/quant/spread-estimators.ts'
import { findTickSize } from '../../../../plugins/lib/quant/tick-size.ts'
import { garmanKlass, parkinson, yangZhangVariance } from '../../../../plugins/lib/quant/volatility-estimators.ts'

/** Each value below is the example in the documentation of the function. */
describe('the worked examples in the documentation of lib/quant', () => {
  it('are right for spreads', () => {
    expect(abdiRanaldoSpread({ high: [101, 101], low: [99, 99], close: [101, 101] })).to.be.closeTo(0.02, 1e-4)
    expect(corwinSchultzSpread({ high: [101, 101], low: [99, 99], close: [100, 100] })).to.be.closeTo(0.02, 1e-4)
    expect(rollSpread([100, 101, 100, 101, 100, 101])).to.be.closeTo(0.0229, 1e-4)
  })

  it('are right for volatility and impact', () => {
    expect(parkinson(102, 99)).to.be.closeTo(0.000321, 1e-6)
    expect(garmanKlass(100, 102, 99, 101)).to.be.closeTo(0.000407, 1e-6)
    const bars = { open: [100, 101, 100], high: [102, 102, 102], low: [99, 100, 99], close: [101, 100, 101] }
    expect(yangZhangVariance(bars)).to.be.closeTo(0.000287962, 1e-9)
    const order = { quantity: 1e6, dailyVolume: 1e9, dailyVolatility: 0.02 }
    expect(squareRootImpact(order)).to.be.closeTo(0.000252982, 1e-9)
  })

  it('are right for rounding', () => {
    expect(roundTo(0.87456, 4)).to.equal(0.8746)
    expect([12.345, 0.01234].map(bpsDecimals)).to.deep.equal([2, 4])
    expect([12.345, -0.01234, 0, 3.8e-13].map(roundBps)).to.deep.equal([12.35, -0.0123, 0, 0])
    expect(roundSignificant(0.00011904761904761905)).to.equal(0.000119048)
    expect([0.04514522, 0.0000123, 0.99998].map(roundProbability)).to.deep.equal([0.0451, 0.000012, 1])
    const report = { t_stat: 2.522323009, psr: 0.96600052137, net_bps: [162.9161, null], at: { price: 1234567.89 } }
    expect(roundNamed(report)).to.deep.equal({
      t_stat: 2.52232,
      psr: 0.966001,
      net_bps: [162.92, null],
      at: { price: 1234567.89 },
    })
  })

  it('are right for p values', () => {
    expect(sharpePValue(0.75, 20)).to.be.closeTo(0.000796, 1e-6)
    expect(sharpeOfPValue(0.16, 20)).to.be.closeTo(0.3141, 1e-4)
    expect(bonferroni(0.0008, 200)).to.be.closeTo(0.16, 1e-12)
    expect(sidak(0.0008, 200)).to.be.closeTo(0.14791, 1e-5)
    expect(bhy([0.005, 0.009, 0.0128])).to.deep.equal([0.0128, 0.0128, 0.0128])
    expect(normalCdf(1.96)).to.equal(0.9750021048517795)
    expect(normalQuantile(0.001)).to.be.closeTo(-3.090232306167813, 1e-15)
  })

  it('are right for the length of a record', () => {
    expect(minimumTrackRecord({ sharpe: 2 / Math.sqrt(252) }, 1 / Math.sqrt(252))).to.be.closeTo(688.2, 0.1)
    const { years, bound } = minimumBacktest(1, 45)
    expect(years).to.be.closeTo(4.998, 1e-3)
    expect(bound).to.be.closeTo(7.613, 1e-3)
  })

  it('are right for samples and rolling medians', () => {
    expect(autocorrelation([1, 2, 3, 4, 5], 2).map((value) => Number(value.toFixed(12)))).to.deep.equal([0.4, -0.1])
    expect(quantileSorted([1, 2, 3, 4], 0.65)).to.be.closeTo(2.95, 1e-12)
    expect(empiricalCdf([-1, 0, 2], 1)).to.equal(0.75)
    expect([...centredMedian([1, 9, 2, 3, 8], 3)]).to.deep.equal([5, 2, 3, 3, 5.5])
    expect([...neighbourMedian([1, 9, 2, 3, 8], 1)]).to.deep.equal([9, 1.5, 6, 5, 3])
    expect(median([4, 1, 3, 2])).to.equal(2.5)
    expect(seededRandom(1)()).to.equal(0.6270739405881613)
    expect(stationaryBootstrap([3, 3, 3]).mean[0]).to.equal(3)
    expect(findTickSize(Array.from({ length: 200 }, (_, i) => 100 + i * 0.05))).to.equal(0.05)
  })
})
