import { expect } from 'chai'
import { bootstrapVariance, superiorAbility } from '../../../../plugins/lib/quant/superior-predictive-ability.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'

describe('the test for superior predictive ability', () => {
  const random = seededRandom(3)
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const series = (count: number, mean = 0): Float64Array => Float64Array.from({ length: count }, () => mean + normal())

  it('has the p values that all possible resamples give', () => {
    // Enumerated in Python: 73, 36, 73 and 218 of 3,125 resamples exceed the statistics.
    const trials = [
      [0.031, -0.012, 0.023, 0.009, 0.014],
      [-0.02, 0.011, -0.034, 0.002, 0.013],
    ].map((values) => Float64Array.from(values))
    const found = superiorAbility(trials, { draws: 60_000, meanBlock: 1 })!
    expect(found.consistent).to.be.closeTo(73 / 3125, 0.003)
    expect(found.lower).to.be.closeTo(36 / 3125, 0.003)
    expect(found.upper).to.be.closeTo(73 / 3125, 0.003)
    expect(found.realityCheck).to.be.closeTo(218 / 3125, 0.005)
  })

  it('has the variance of the worked example', () => {
    expect(bootstrapVariance([1, 2, 3, 4], 2)).to.be.closeTo(0.859375, 1e-15)
    expect(bootstrapVariance([1, 2, 3, 4], 1)).to.equal(1.25)
  })

  it('calls noise significant about as often as it says', () => {
    let wrong = 0
    for (let run = 0; run < 200; run += 1) {
      const found = superiorAbility(
        Array.from({ length: 5 }, () => series(150)),
        { draws: 200 },
      )!
      expect(found.lower).to.be.at.most(found.consistent)
      expect(found.consistent).to.be.at.most(found.upper)
      if (found.consistent <= 0.05) wrong += 1
    }
    // Binomial with 0.05: more than 20 of 200 happen once in a thousand.
    expect(wrong).to.be.at.most(20)
  })

  it('finds one good trial among many, and bad trials do not hide it from the consistent p value', () => {
    const good = series(400, 0.3)
    const poor = Array.from({ length: 30 }, () => Float64Array.from(series(400, -0.5), (one) => 3 * one))
    const found = superiorAbility([good, ...poor])!
    expect(found.consistent).to.be.below(0.01)
    // White's reality check does not divide by the deviation, and takes the poor trials for as good as nothing.
    expect(found.realityCheck).to.be.above(found.consistent)
  })

  it('is the same in every run, and absent if nothing can be tested', () => {
    const trials = [series(50), series(50)]
    expect(superiorAbility(trials)).to.deep.equal(superiorAbility(trials))
    expect(superiorAbility([series(50)])).to.equal(null)
    expect(superiorAbility([new Float64Array(50).fill(0.1), new Float64Array(50)])).to.equal(null)
  })
})
