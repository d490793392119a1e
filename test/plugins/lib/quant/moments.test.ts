import { expect } from 'chai'
import { autocorrelation } from '../../../../plugins/lib/quant/autocorrelation.ts'
import { moments } from '../../../../plugins/lib/quant/moments.ts'

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

  it('of a Bernoulli sample satisfy kurtosis = skewness² + 1', () => {
    const { skewness, kurtosis } = moments([1, 0, 0, 0])
    expect(kurtosis).to.be.closeTo(skewness ** 2 + 1, 1e-12)
  })

  it('of a constant sample read as normal', () => {
    expect(moments([3, 3, 3])).to.include({ variance: 0, skewness: 0, kurtosis: 3 })
  })

  it('keep their digits at a large level', () => {
    expect(moments([1e9 + 1, 1e9 + 2, 1e9 + 3]).variance).to.be.closeTo(2 / 3, 1e-12)
  })
})

describe('autocorrelation', () => {
  it('divides each lag by the variance about the common mean', () => {
    const [first, second] = autocorrelation([1, 2, 3, 4, 5], 2)
    expect(first).to.be.closeTo(0.4, 1e-15)
    expect(second).to.be.closeTo(-0.1, 1e-15)
  })

  it('is 0 for a constant series', () => {
    expect(autocorrelation([2, 2, 2], 1)).to.deep.equal([0])
  })
})
