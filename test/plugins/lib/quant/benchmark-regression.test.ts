import { expect } from 'chai'
import { regressOnBenchmark } from '../../../../plugins/lib/quant/benchmark-regression.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'

describe('the regression on a benchmark', () => {
  it('has the values of matrix algebra', () => {
    // With numpy: b = (X'X)⁻¹X'y, and Newey and West's matrix with one lag times n/(n-2).
    const fit = regressOnBenchmark([0.012, -0.004, 0.021, 0.003, -0.009], [0.01, -0.005, 0.015, 0, -0.01], 1)!
    expect(fit.alpha).to.be.closeTo(0.00227907, 1e-8)
    expect(fit.beta).to.be.closeTo(1.16046512, 1e-8)
    expect(fit.alphaT).to.be.closeTo(3.7337410373947, 1e-9)
  })

  it('finds nothing beside the benchmark in a multiple of it', () => {
    const benchmark = [0.01, -0.02, 0.013, 0.004, -0.007]
    const fit = regressOnBenchmark(
      benchmark.map((one) => 3 * one),
      benchmark,
    )!
    expect(fit.beta).to.be.closeTo(3, 1e-12)
    expect(fit.alphaT).to.equal(0)
  })

  it('takes a benchmark that does not move for none', () => {
    expect(regressOnBenchmark([0.01, 0.02, 0.03], [0, 0, 0])).to.deep.include({ beta: 0 })
    expect(regressOnBenchmark([0.01, 0.02], [0, 0])).to.equal(null)
  })

  it('has a t statistic of about deviation 1 where positions change at random', () => {
    const random = seededRandom(5)
    const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    let squares = 0
    const runs = 300
    for (let run = 0; run < runs; run += 1) {
      const benchmark = Array.from({ length: 500 }, () => 0.0004 + 0.01 * normal())
      let position = 1
      const returns = benchmark.map((one) => {
        if (random() < 0.1) position = 4 * random()
        return position * one
      })
      squares += regressOnBenchmark(returns, benchmark)!.alphaT ** 2
    }
    expect(Math.sqrt(squares / runs)).to.be.within(0.9, 1.15)
  })
})
