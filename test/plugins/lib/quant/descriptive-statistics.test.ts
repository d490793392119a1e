import { expect } from 'chai'
import fc from 'fast-check'
import {
  autocorrelation,
  moments,
  empiricalCdf,
  quantileSorted,
} from '../../../../plugins/lib/quant/descriptive-statistics.ts'
import { createSortedWindow, pushSorted, windowQuantile } from '../../../../plugins/lib/quant/sorted-window.ts'

describe('moments', () => {
  it('are population moments with raw kurtosis', () => {
    expect(moments([2, 4, 4, 4, 5, 5, 7, 9])).to.deep.equal({
      count: 8,
      mean: 5,
      variance: 4,
      skewness: 0.65625,
      kurtosis: 2.78125,
    })
  })

  it('satisfy kurtosis = skewness² + 1 for a Bernoulli sample', () => {
    const { skewness, kurtosis } = moments([1, 0, 0, 0])
    expect(kurtosis).to.be.closeTo(skewness ** 2 + 1, 1e-12)
  })

  it('have the skewness and kurtosis of a normal distribution for a constant sample', () => {
    expect(moments([3, 3, 3])).to.include({ variance: 0, skewness: 0, kurtosis: 3 })
  })

  it('keep their precision at a large level', () => {
    expect(moments([1e9 + 1, 1e9 + 2, 1e9 + 3]).variance).to.be.closeTo(2 / 3, 1e-12)
  })
})

describe('autocorrelation', () => {
  it('divides each lag by the variance about the common mean', () => {
    const [first, second] = autocorrelation([1, 2, 3, 4, 5], 2)
    expect(first).to.be.closeTo(0.4, 1e-15)
    expect(second).to.be.closeTo(-0.1, 1e-15)
  })

  it('has as many lags as asked for, each as the definition says', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 40 }),
        fc.nat(13),
        (values, lags) => {
          const { count, mean, variance } = moments(values)
          const expected = Array.from({ length: lags }, (_, index) => {
            let sum = 0
            for (let i = index + 1; i < count; i += 1) sum += (values[i]! - mean) * (values[i - index - 1]! - mean)
            return variance > 0 ? sum / count / variance : 0
          })
          expect(autocorrelation(values, lags).map((one) => one + 0)).to.deep.equal(expected.map((one) => one + 0))
        },
      ),
    )
  })

  it('is 0 for a constant series', () => {
    expect(autocorrelation([2, 2, 2], 1)).to.deep.equal([0])
  })
})

describe('quantiles', () => {
  it('match type 7 of R and numpy', () => {
    // R: quantile(c(15, 20, 35, 40, 50), c(.05, .3, .4, .5, 1)) → 16 23 29 35 50
    const sorted = [15, 20, 35, 40, 50]
    expect([0.05, 0.3, 0.4, 0.5, 1].map((p) => Math.round(quantileSorted(sorted, p) * 1e9) / 1e9)).to.deep.equal([
      16, 23, 29, 35, 50,
    ])
  })

  it('are NaN for an empty sample', () => {
    expect(quantileSorted([], 0.5)).to.be.NaN
  })

  it('are the same for a sorted window as for a fresh sort of its values', () => {
    const number = fc.oneof(fc.integer({ min: -5, max: 5 }), fc.double({ noNaN: true, noDefaultInfinity: true }))
    fc.assert(
      fc.property(
        fc.array(number, { maxLength: 60 }),
        fc.integer({ min: 1, max: 12 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (values, capacity, p) => {
          const window = createSortedWindow(capacity)
          for (const [i, value] of values.entries()) {
            pushSorted(window, value)
            const fresh = values.slice(Math.max(0, i + 1 - capacity), i + 1).sort((a, b) => a - b)
            expect(windowQuantile(window, p)).to.equal(quantileSorted(fresh, p))
          }
        },
      ),
    )
  })

  it('reject NaN in a sorted window', () => {
    expect(() => pushSorted(createSortedWindow(3), NaN)).to.throw(RangeError)
  })
})

describe('the empirical distribution function', () => {
  it('is linear between the quantiles, 0 below and 1 above', () => {
    expect([-2, -1, -0.5, 0, 1, 2, 3].map((value) => empiricalCdf([-1, 0, 2], value))).to.deep.equal([
      0, 0, 0.25, 0.5, 0.75, 1, 1,
    ])
  })

  it('is the inverse of the quantile if the quantiles differ', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: -1000, max: 1000 }), { minLength: 2, maxLength: 50 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (values, p) => {
          const sorted = values.sort((a, b) => a - b)
          expect(empiricalCdf(sorted, quantileSorted(sorted, p))).to.be.closeTo(p, 1e-9)
        },
      ),
    )
  })
})
