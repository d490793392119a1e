import { expect } from 'chai'
import { probabilityOfOverfitting } from '../../../../plugins/lib/quant/backtest-overfitting.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'

function noise(trials: number, periods: number, drift: (trial: number, period: number) => number): Float64Array[] {
  const random = seededRandom(11)
  return Array.from({ length: trials }, (_, trial) =>
    Float64Array.from({ length: periods }, (_, period) => random() - 0.5 + drift(trial, period)),
  )
}

describe('the probability of backtest overfitting', () => {
  it('matches a direct enumeration of the splits', () => {
    // The same 5 × 65 series in numpy: Sharpe ratios of the concatenated blocks, 70 combinations, the last period unused.
    const found = probabilityOfOverfitting(
      noise(5, 65, (trial) => trial * 0.02),
      8,
    )
    expect(found?.pbo).to.be.closeTo(9 / 70, 1e-15)
    expect(found?.slope).to.be.closeTo(-0.5240302413130612, 1e-12)
    expect(found?.lossProbability).to.be.closeTo(6 / 70, 1e-15)
    expect(found?.logits).to.have.length(70)
  })

  it('is 0 if one trial has skill in all periods', () => {
    const found = probabilityOfOverfitting(noise(10, 320, (trial) => (trial === 4 ? 1 : 0)))
    expect(found).to.include({ pbo: 0, lossProbability: 0, blocks: 16 })
  })

  it('is 1 if the winner of one half loses in the other', () => {
    const found = probabilityOfOverfitting(
      noise(10, 400, (trial, period) => (period < 200 ? trial - 4.5 : 4.5 - trial) / 5),
      2,
    )
    expect(found?.pbo).to.equal(1)
    expect(found?.lossProbability).to.equal(1)
  })

  it('is 1 for identical trials, because the winner ranks at the median', () => {
    const same = Float64Array.from({ length: 64 }, (_, i) => (i % 3) - 0.9)
    expect(probabilityOfOverfitting([same, same, same], 4)?.pbo).to.equal(1)
  })

  it('accepts constant series', () => {
    const constant = new Float64Array(64).fill(0.01)
    expect(probabilityOfOverfitting([constant, constant], 4)?.slope).to.equal(0)
  })

  it('is null for one trial, an odd number of blocks or too few periods', () => {
    expect(probabilityOfOverfitting(noise(1, 64, () => 0))).to.equal(null)
    expect(
      probabilityOfOverfitting(
        noise(3, 64, () => 0),
        7,
      ),
    ).to.equal(null)
    expect(probabilityOfOverfitting(noise(3, 31, () => 0))).to.equal(null)
    expect(probabilityOfOverfitting([])).to.equal(null)
  })
})
