import { expect } from 'chai'
import * as fc from 'fast-check'
import { deflatedSharpeCurve } from '../../../../plugins/lib/quant/deflated-sharpe-chart.ts'
import { moments } from '../../../../plugins/lib/quant/descriptive-statistics.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'
import {
  deflatedSharpe,
  sharpeError,
  sharpeScale,
  expectedMaximum,
  probabilisticSharpe,
  minimumBacktest,
  minimumTrackRecord,
  smallSampleSharpe,
} from '../../../../plugins/lib/quant/sharpe-ratio.ts'

const number = (min: number, max: number) => fc.double({ min, max, noNaN: true })
/** Autocorrelations of an AR(1) process, lags 1 to 11. */
const lags = (rho: number) => Array.from({ length: 11 }, (_, k) => rho ** (k + 1))

describe('the probabilistic Sharpe ratio', () => {
  // Bailey and López de Prado (2012), the hedge-fund example.
  const fund = { sharpe: 0.458, observations: 24 }

  it('matches the published 0.982 for normal returns and 0.913 for the returns of the fund', () => {
    expect(probabilisticSharpe(fund)).to.be.closeTo(0.982, 5e-4)
    expect(probabilisticSharpe({ ...fund, skewness: -2.448, kurtosis: 10.164 })).to.be.closeTo(0.913, 5e-4)
  })

  it('is 0.5 at its own benchmark and NaN for a single return', () => {
    expect(probabilisticSharpe(fund, 0.458)).to.equal(0.5)
    expect(probabilisticSharpe({ sharpe: 1, observations: 1 })).to.be.NaN
  })

  it('is a probability for returns of two values, where rounding leaves a variance below zero', () => {
    const sample = { sharpe: 21.16601048851671 / Math.sqrt(252), observations: 250, skewness: 1.5, kurtosis: 3.25 }
    expect(probabilisticSharpe(sample)).to.equal(1)
    expect(probabilisticSharpe(sample, 2)).to.equal(0)
    expect(minimumTrackRecord(sample)).to.equal(1)
  })

  it('is a probability for every possible skewness and kurtosis', () => {
    fc.assert(
      fc.property(number(-5, 5), number(-10, 10), number(0, 100), (sharpe, skewness, extra) => {
        const kurtosis = skewness ** 2 + 1 + extra
        const p = probabilisticSharpe({ sharpe, observations: 100, skewness, kurtosis })
        expect(p).to.be.within(0, 1)
      }),
    )
  })
})

describe('the deflated Sharpe ratio', () => {
  // Bailey and López de Prado (2014), the numerical example: annual 2.5 over 1,250 days of 250, annual variance 1/2.
  const sample = { sharpe: 2.5 / Math.sqrt(250), observations: 1250, skewness: -3, kurtosis: 10 }
  const example = (trials: number) => deflatedSharpe(sample, trials, 0.5 / 250)

  it('matches the published 0.9004 for 100 trials and 0.9505 for 46', () => {
    expect(example(100).dsr).to.be.closeTo(0.9004, 5e-5)
    expect(example(46).dsr).to.be.closeTo(0.9505, 5e-5)
    expect(example(100).benchmark).to.be.closeTo(0.1132, 5e-5)
  })

  it('matches the published 0.9505 for 88 trials with normal returns', () => {
    const normal = deflatedSharpe({ sharpe: sample.sharpe, observations: 1250 }, 88, 0.5 / 250)
    expect(normal.dsr).to.be.closeTo(0.9505, 5e-5)
    expect(normal.benchmark * Math.sqrt(250)).to.be.closeTo(1.7574, 5e-5)
  })

  it('falls as the number of trials grows', () => {
    expect([10, 88, 1000].map((trials) => Number(example(trials).dsr.toFixed(4)))).to.deep.equal([
      0.9939, 0.9102, 0.6399,
    ])
  })

  it('equals the probabilistic Sharpe ratio for one trial', () => {
    expect(deflatedSharpe(sample, 1)).to.deep.equal({ dsr: probabilisticSharpe(sample), benchmark: 0 })
  })

  it('uses the sampling variance of a worthless trial by default', () => {
    expect(deflatedSharpe(sample, 10)).to.deep.equal(deflatedSharpe(sample, 10, 1 / 1249))
  })
})

describe('the expected maximum of several trials', () => {
  it('matches the published values', () => {
    expect(expectedMaximum(10)).to.be.closeTo(1.5746, 5e-5)
    expect(expectedMaximum(45)).to.be.closeTo(2.2356, 5e-5)
    expect(expectedMaximum(100)).to.be.closeTo(2.5306, 5e-5)
    expect(expectedMaximum(1000)).to.be.closeTo(3.2551, 5e-5)
  })

  it('is 0 for one trial and NaN for no trial', () => {
    expect(expectedMaximum(1)).to.equal(0)
    expect(expectedMaximum(0)).to.be.NaN
  })
})

describe('the minimum length of a track record or backtest', () => {
  it('is 2.73 years for an annual Sharpe ratio of 2 against 1 with 95% confidence and daily returns', () => {
    // Bailey and López de Prado (2012), section 5.
    const days = minimumTrackRecord({ sharpe: 2 / Math.sqrt(252) }, 1 / Math.sqrt(252))
    expect(days / 252).to.be.closeTo(2.73, 5e-3)
  })

  it('is the length at which the probabilistic Sharpe ratio reaches the confidence', () => {
    const sample = { sharpe: 0.1, skewness: -1, kurtosis: 6 }
    const observations = minimumTrackRecord(sample, 0, 0.95)
    expect(probabilisticSharpe({ ...sample, observations })).to.be.closeTo(0.95, 1e-12)
  })

  it('is infinite if the Sharpe ratio is not above the benchmark', () => {
    expect(minimumTrackRecord({ sharpe: 0.1 }, 0.1)).to.equal(Infinity)
    expect(minimumBacktest(0, 45)).to.deep.equal({ years: Infinity, bound: Infinity })
  })

  it('allows 45 trials in five years for an annual Sharpe ratio of 1', () => {
    // Bailey, Borwein, López de Prado and Zhu (2014), figure 2.
    const { years, bound } = minimumBacktest(1, 45)
    expect(years).to.be.closeTo(5, 5e-3)
    expect(bound).to.be.above(years)
  })
})

describe("Lo's scaling of the Sharpe ratio", () => {
  it('scales by the square root without autocorrelation', () => {
    expect(sharpeScale(12, [])).to.be.closeTo(Math.sqrt(12), 1e-15)
  })

  it('scales less with positive and more with negative autocorrelation', () => {
    // Computed by hand from eq. 20 for an AR(1) of ±0.2 and q = 12.
    expect(sharpeScale(12, lags(0.2))).to.be.closeTo(2.87884869, 1e-8)
    expect(sharpeScale(12, lags(-0.2))).to.be.above(Math.sqrt(12))
  })

  it('is 2/√(2 + 2ρ) for two periods, as in the paper', () => {
    expect(sharpeScale(2, [0.5])).to.be.closeTo(2 / Math.sqrt(3), 1e-15)
  })

  it('has the standard error √((1 + SR²/2)/T)', () => {
    expect(sharpeError(0.5, 60)).to.be.closeTo(Math.sqrt(1.125 / 60), 1e-15)
  })
})

describe('the curve of the deflated Sharpe ratio', () => {
  it('contains the published example and never rises', () => {
    const sample = { sharpe: 2.5 / Math.sqrt(250), observations: 1250, skewness: -3, kurtosis: 10 }
    const curve = deflatedSharpeCurve(sample, 0.5 / 250, 1000)
    expect(new Map(curve).get(100)).to.be.closeTo(0.9004, 5e-5)
    expect([curve[0]?.[0], curve.at(-1)?.[0]]).to.deep.equal([1, 1000])
    expect(curve[0]?.[1]).to.equal(probabilisticSharpe(sample))
    for (const [index, [, dsr]] of curve.entries()) if (index > 0) expect(dsr).to.be.at.most(curve[index - 1]![1])
  })
})

describe('the probabilistic Sharpe ratio of a small sample', () => {
  it('is the exact one for normal returns, unless skew and tails make it smaller', () => {
    const two = { sharpe: 21 / Math.sqrt(2), observations: 2, kurtosis: 1 }
    expect(probabilisticSharpe(two)).to.be.above(1 - 1e-12)
    expect(smallSampleSharpe(two)).to.be.closeTo(1 - 0.015146172188368145, 1e-12)
    const skewed = { sharpe: 0.8, observations: 10, skewness: -2, kurtosis: 7 }
    expect(smallSampleSharpe(skewed)).to.equal(probabilisticSharpe(skewed))
  })

  it('keeps what it says: worthless returns reach 95 % in 5 of 100 samples', () => {
    const random = seededRandom(9)
    const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    for (const observations of [2, 5, 12]) {
      let high = 0
      for (let run = 0; run < 4000; run += 1) {
        const { mean, variance } = moments(Array.from({ length: observations }, normal))
        const sharpe = mean / Math.sqrt((variance * observations) / (observations - 1))
        if (smallSampleSharpe({ sharpe, observations, kurtosis: 1 }) >= 0.95) high += 1
      }
      expect(high / 4000).to.be.within(0.035, 0.065)
    }
  })

  it('counts bets that depend on each other once, and changes nothing for many', () => {
    const sample = { sharpe: 0.1, observations: 400 }
    expect(smallSampleSharpe(sample, 0, 400)).to.equal(probabilisticSharpe(sample))
    expect(smallSampleSharpe(sample, 0, 5)).to.be.below(probabilisticSharpe(sample))
    expect(smallSampleSharpe(sample, 0.05, 5)).to.be.below(smallSampleSharpe(sample, 0, 5))
  })
})
