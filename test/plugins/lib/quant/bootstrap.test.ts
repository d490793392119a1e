import { expect } from 'chai'
import { centralInterval, stationaryBootstrap } from '../../../../plugins/lib/quant/bootstrap.ts'
import { moments } from '../../../../plugins/lib/quant/descriptive-statistics.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'

function sample(count: number): Float64Array {
  const random = seededRandom(7)
  return Float64Array.from({ length: count }, () => random() - 0.48)
}

describe('the stationary bootstrap', () => {
  it('gives the same result for the same seed and another result for another seed', () => {
    const values = sample(300)
    expect(stationaryBootstrap(values)).to.deep.equal(stationaryBootstrap(values))
    expect(stationaryBootstrap(values, { seed: 2 }).mean).not.to.deep.equal(stationaryBootstrap(values).mean)
  })

  it('gives the mean of independent returns the standard error that theory predicts', () => {
    const values = sample(1000)
    const { mean, variance } = moments(values)
    const { mean: draws, sharpe } = stationaryBootstrap(values)
    const [low, high] = centralInterval(draws)
    expect((low + high) / 2).to.be.closeTo(mean, 0.003)
    expect((high - low) / (2 * 1.96 * Math.sqrt(variance / 1000))).to.be.within(0.8, 1.2)
    expect(sharpe[1000]).to.be.closeTo(mean / Math.sqrt(variance), 0.01)
  })

  it('gives wider intervals with longer blocks if the series has long swings', () => {
    const swings = Float64Array.from({ length: 1000 }, (_, i) => Math.sin(i / 40))
    const width = (meanBlock: number): number => {
      const [low, high] = centralInterval(stationaryBootstrap(swings, { meanBlock }).mean)
      return high - low
    }
    expect(width(50)).to.be.above(3 * width(1))
  })

  it('draws blocks whose lengths are geometric, by inversion of each uniform number', () => {
    /** The definition: adds the observations of each block. */
    function drawn(values: Float64Array, meanBlock: number, draws: number): Float64Array {
      const count = values.length
      const random = seededRandom(1)
      const means = Float64Array.from({ length: draws }, () => {
        let sum = 0
        for (let left = count; left > 0;) {
          const start = Math.floor(random() * count)
          const length = Math.min(left, 1 + Math.floor(Math.log(1 - random()) / Math.log(1 - 1 / meanBlock)))
          for (let at = start; at < start + length; at += 1) sum += values[at % count]!
          left -= length
        }
        return sum / count
      })
      return means.sort()
    }
    for (const [count, meanBlock] of [
      [10, 1.5],
      [500, 8],
      [5000, 40],
      [20_000, 3000],
    ] as const) {
      const values = sample(count)
      const { mean } = stationaryBootstrap(values, { meanBlock, draws: 300 })
      const expected = drawn(values, meanBlock, 300)
      for (const [at, one] of mean.entries()) expect(one, `${count}, ${meanBlock}`).to.be.closeTo(expected[at]!, 1e-12)
    }
  })

  it('draws single observations with a mean block length of one', () => {
    const { mean } = stationaryBootstrap([0, 1], { meanBlock: 1, draws: 500 })
    expect(new Set(mean)).to.deep.equal(new Set([0, 0.5, 1]))
  })

  it('keeps its precision at a large level', () => {
    const values = sample(200).map((value) => value + 1e9)
    const [low, high] = centralInterval(stationaryBootstrap(values).sharpe)
    expect(low).to.be.above(1e9)
    expect(high).to.be.below(1e10)
  })

  it('gives a constant series an interval of width 0', () => {
    expect(centralInterval(stationaryBootstrap([3, 3, 3]).mean)).to.deep.equal([3, 3])
    expect(stationaryBootstrap([3, 3, 3]).sharpe[0]).to.equal(0)
  })
})

describe('the central interval', () => {
  it('interpolates between draws', () => {
    expect(centralInterval([0, 1, 2, 3, 4], 0.5)).to.deep.equal([1, 3])
    expect(centralInterval([5], 0.95)).to.deep.equal([5, 5])
  })
})
