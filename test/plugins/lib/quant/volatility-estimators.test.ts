import { expect } from 'chai'
import fc from 'fast-check'
import { garmanKlass, parkinson } from '../../../../plugins/lib/quant/volatility-estimators.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'

/** Bars of a random walk of 400 steps each, with unit variance a bar. */
function walks(count: number): [open: number, high: number, low: number, close: number][] {
  const random = seededRandom(11)
  return Array.from({ length: count }, () => {
    let [at, high, low] = [0, 0, 0]
    for (let i = 0; i < 400; i += 1) {
      at += (random() < 0.5 ? -1 : 1) / 20
      high = Math.max(high, at)
      low = Math.min(low, at)
    }
    return [1, Math.exp(high), Math.exp(low), Math.exp(at)]
  })
}

describe('the range variances of Parkinson and of Garman and Klass', () => {
  it('match a calculation by hand', () => {
    expect(garmanKlass(100, 102, 99, 101)).to.be.closeTo(
      0.5 * 0.029852963149681 ** 2 - 0.38629436111989 * 0.00995033085316809 ** 2,
      1e-15,
    )
    expect(parkinson(102, 99)).to.be.closeTo(0.029852963149681 ** 2 / 2.77258872223978, 1e-15)
  })

  it('average slightly below the variance of a random walk with finite steps', () => {
    const bars = walks(3000)
    const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
    expect(mean(bars.map((bar) => garmanKlass(...bar)))).to.be.within(0.87, 1.02)
    expect(mean(bars.map(([, high, low]) => parkinson(high, low)))).to.be.within(0.87, 1.02)
  })

  it('are never negative for a possible bar and 0 for a flat one', () => {
    const price = fc.double({ min: 0.01, max: 1e6, noNaN: true })
    fc.assert(
      fc.property(price, price, price, price, (a, b, c, d) => {
        const [low, high] = [Math.min(a, b, c, d), Math.max(a, b, c, d)]
        expect(garmanKlass(a, high, low, b)).to.be.at.least(0)
        expect(parkinson(high, low)).to.be.at.least(0)
        expect(garmanKlass(a, a, a, a)).to.equal(0)
      }),
    )
  })
})
