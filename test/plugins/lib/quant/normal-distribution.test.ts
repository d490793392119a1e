import { expect } from 'chai'
import * as fc from 'fast-check'
import { erfc, normalCdf, normalQuantile } from '../../../../plugins/lib/quant/normal-distribution.ts'

const relative = (value: number, expected: number): number => Math.abs(value / expected - 1)

describe('the normal distribution', () => {
  it('matches tabulated values of erfc in all three regions', () => {
    // Abramowitz and Stegun, table 7.1, and Wolfram's values for the tails.
    expect(relative(erfc(0.25), 0.7236736098317631)).to.be.below(1e-14)
    expect(relative(erfc(1), 0.15729920705028513)).to.be.below(1e-14)
    expect(relative(erfc(-1), 1.8427007929497148)).to.be.below(1e-14)
    expect(relative(erfc(5), 1.5374597944280349e-12)).to.be.below(1e-14)
    expect(relative(erfc(10), 2.088487583762545e-45)).to.be.below(1e-13)
    expect(erfc(40)).to.equal(0)
  })

  it('is accurate in the tails', () => {
    expect(normalCdf(0)).to.equal(0.5)
    expect(relative(normalCdf(1.96), 0.9750021048517795)).to.be.below(1e-15)
    expect(relative(normalCdf(-10), 7.619853024160527e-24)).to.be.below(1e-13)
    expect(normalCdf(-Infinity)).to.equal(0)
    expect(normalCdf(Infinity)).to.equal(1)
  })

  it('matches the check values that Wichura published with AS 241', () => {
    expect(normalQuantile(0.25)).to.be.closeTo(-0.6744897501960817, 1e-15)
    expect(normalQuantile(0.001)).to.be.closeTo(-3.090232306167814, 2e-15)
    expect(normalQuantile(1e-20)).to.be.closeTo(-9.26234008979841, 1e-14)
  })

  it('has a quantile function that inverts it to 1e-11', () => {
    fc.assert(
      fc.property(fc.double({ min: -8, max: 8, noNaN: true }), (x) => {
        const p = normalCdf(-Math.abs(x))
        expect(normalQuantile(p)).to.be.closeTo(-Math.abs(x), 1e-11)
      }),
    )
  })

  it('has infinite quantiles at 0 and 1 and NaN outside', () => {
    expect(normalQuantile(0)).to.equal(-Infinity)
    expect(normalQuantile(1)).to.equal(Infinity)
    for (const p of [-0.1, 1.1, Number.NaN]) expect(normalQuantile(p)).to.be.NaN
  })
})
