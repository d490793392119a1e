import { expect } from 'chai'
import * as fc from 'fast-check'
import {
  bhy,
  bonferroni,
  holm,
  sidak,
  haircuts,
  sharpeOfPValue,
  sharpePValue,
} from '../../../../plugins/lib/quant/multiple-testing.ts'

// Six p values of an example in Harvey and Liu (2015), section 4.
const PAPER = [0.005, 0.009, 0.0128, 0.0135, 0.045, 0.06]
const rounded = (values: readonly number[]): number[] => values.map((value) => Number(value.toFixed(4)))

describe('adjusted p values', () => {
  it('are multiplied by the number of tests with Bonferroni, up to 1', () => {
    expect(rounded(PAPER.map((p) => bonferroni(p, 6)))).to.deep.equal([0.03, 0.054, 0.0768, 0.081, 0.27, 0.36])
    expect(bonferroni(0.5, 3)).to.equal(1)
  })

  it('are slightly lower with Šidák and precise for tiny p values', () => {
    expect(sidak(0.05, 2)).to.be.closeTo(0.0975, 1e-15)
    expect(sidak(1e-18, 100)).to.be.closeTo(1e-16, 1e-30)
  })

  it('step down with Holm', () => {
    expect(rounded(holm(PAPER))).to.deep.equal([0.03, 0.045, 0.0512, 0.0512, 0.09, 0.09])
  })

  it('keep the order of the input with Holm', () => {
    expect(rounded(holm([0.01, 0.04, 0.03, 0.005]))).to.deep.equal([0.03, 0.06, 0.06, 0.02])
  })

  it("step up with Benjamini, Hochberg and Yekutieli, c(6) = 2.45, from the paper's largest p value", () => {
    expect(rounded(bhy(PAPER))).to.deep.equal([0.0496, 0.0496, 0.0496, 0.0496, 0.06, 0.06])
  })

  it('are never smaller than the original and never larger than 1', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 1e-12, max: 1, noNaN: true }), { minLength: 1, maxLength: 20 }), (ps) => {
        for (const adjusted of [holm(ps), bhy(ps), ps.map((p) => sidak(p, ps.length))]) {
          for (const [index, p] of adjusted.entries()) expect(p).to.be.within(ps[index]! * (1 - 1e-12), 1)
        }
      }),
    )
  })
})

describe('haircut Sharpe ratios', () => {
  it("match the paper's 0.32, a haircut of about 60%, for 0.75 over 20 years and 200 tests", () => {
    const { p, bonferroni: cut } = haircuts(0.75, 20, 200)
    expect(p).to.be.closeTo(0.0008, 5e-6)
    expect(cut.p).to.be.closeTo(0.16, 1e-3)
    expect(cut.sharpe).to.be.closeTo(0.32, 6e-3)
    expect(cut.haircut).to.be.closeTo(0.6, 0.025)
  })

  it('equal the Sharpe ratio of a single test', () => {
    expect(haircuts(0.2, 250, 1).bonferroni).to.deep.include({ sharpe: 0.2, haircut: 0 })
  })

  it('keep the sign of a negative Sharpe ratio', () => {
    expect(haircuts(-0.75, 20, 200).sidak.sharpe).to.be.closeTo(-0.324, 1e-3)
  })

  it('include Holm and BHY only if the other tests are known', () => {
    expect(haircuts(0.75, 20, 3)).to.include({ holm: null, bhy: null })
    const known = haircuts(0.75, 20, 3, [0.01, 0.2])
    expect(known.holm?.p).to.be.closeTo(3 * known.p, 1e-15)
    expect(known.bhy?.p).to.be.closeTo(3 * (1 + 1 / 2 + 1 / 3) * known.p, 1e-15)
  })

  it('convert a Sharpe ratio to a p value and back', () => {
    expect(sharpeOfPValue(sharpePValue(0.1, 500), 500)).to.be.closeTo(0.1, 1e-14)
    expect(sharpeOfPValue(0, 100)).to.be.finite
  })
})
