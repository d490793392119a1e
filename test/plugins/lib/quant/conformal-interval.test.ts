import { expect } from 'chai'
import * as fc from 'fast-check'
import { adaptedShare, AdaptiveInterval, conformalQuantile } from '../../../../plugins/lib/quant/conformal-interval.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'

const OPTIONS = { tail: 0.1, window: 500, rate: 0.005 }

/** The share of values within the interval that was learnt from those before them. */
function coverage(values: Iterable<number>, skipped = 19): number {
  const learner = new AdaptiveInterval(OPTIONS)
  let [held, judged] = [0, 0]
  for (const value of values) {
    const interval = learner.interval()
    if (interval && learner.cases >= skipped) {
      judged += 1
      if (value >= interval.low && value <= interval.high) held += 1
    }
    learner.learn([value], learner.cases >= skipped)
  }
  return held / judged
}

describe('a conformal quantile', () => {
  it('has the rank of the probability among one value more', () => {
    const nine = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    expect(conformalQuantile(nine, 0.1)).to.equal(1)
    expect(conformalQuantile(nine, 0.9)).to.equal(9)
    expect(conformalQuantile(nine, 0.55)).to.equal(5.5)
    expect(conformalQuantile([1, 2], 0.99)).to.equal(2)
    expect(conformalQuantile([1, Infinity, Infinity], 0.8)).to.equal(Infinity)
  })

  it('holds the next of exchangeable values as often as its ranks say, whatever their distribution', () => {
    const shape = fc.constantFrom<(x: number) => number>(
      (x) => x,
      (x) => Math.tan(3 * (x - 0.5)),
      (x) => -Math.log(1 - x),
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), shape, fc.integer({ min: 9, max: 40 }), (seed, of, count) => {
        const random = seededRandom(seed)
        let held = 0
        for (let i = 0; i < 3000; i += 1) {
          const values = Float64Array.from({ length: count }, () => of(random())).sort()
          const next = of(random())
          if (next >= conformalQuantile(values, 0.1) && next <= conformalQuantile(values, 0.9)) held += 1
        }
        // Between two ranks the share lies between theirs: where in between depends on the distribution.
        const rank = (count + 1) / 10
        const [least, most] = [Math.ceil(rank), Math.floor(rank)].map((whole) => 1 - (2 * whole) / (count + 1))
        expect(held / 3000).to.be.within(least! - 0.035, most! + 0.035)
      }),
      { numRuns: 12 },
    )
  })
})

describe('an adaptive interval', () => {
  it('widens a tail after a miss and narrows it after a hit', () => {
    expect(adaptedShare(0.1, { target: 0.1, rate: 0.01, missed: 1 })).to.equal(0.091)
    expect(adaptedShare(0.1, { target: 0.1, rate: 0.01, missed: 0 })).to.equal(0.101)
    expect(adaptedShare(0, { target: 0.1, rate: 0.01, missed: 1 })).to.equal(0)
  })

  it('holds what it says although the errors grow, jump or wander', () => {
    const random = seededRandom(3)
    const noise = (): number => random() + random() + random() - 1.5
    const count = 6000
    const grown = Array.from({ length: count }, (_, i) => noise() * (1 + (4 * i) / count))
    const jumped = Array.from({ length: count }, (_, i) => noise() * (i % 3000 < 1500 ? 1 : 3))
    let level = 0
    const wandered = Array.from({ length: count }, () => (level = 0.995 * level + 0.1 * noise()) + noise())
    for (const errors of [grown, jumped, wandered]) expect(coverage(errors)).to.be.within(0.77, 0.83)
  })

  it('judges errors that became known together by those before them only', () => {
    const [together, apart] = [new AdaptiveInterval(OPTIONS), new AdaptiveInterval(OPTIONS)]
    together.learn([1, 2, 3], true)
    for (const error of [1, 2, 3]) apart.learn([error], false)
    expect(together.interval()).to.deep.equal(apart.interval())
    expect(together.cases).to.equal(3)
    expect(new AdaptiveInterval(OPTIONS).interval()).to.equal(null)
  })
})
