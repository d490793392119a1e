import { expect } from 'chai'
import fc from 'fast-check'
import { logGamma, noncentralCdf, studentQuantile, studentTail } from '../../../../plugins/lib/quant/student-t.ts'
import { normalCdf } from '../../../../plugins/lib/quant/normal-distribution.ts'

describe("Student's t", () => {
  it('has the tails of the tables, also with degrees that are not whole', () => {
    const tails = [
      [2.0423, 30, 0.025],
      [3.646, 30, 0.0005],
      [1.6449, 1e6, 0.05],
      [21, 1, 0.015146172188368145],
      [40, 3.5, 4.383220554686509e-6],
      [0.3, 0.7, 0.4146175931856675],
    ] as const
    for (const [t, degrees, tail] of tails) expect(studentTail(t, degrees)).to.be.closeTo(tail, 2e-4 * tail)
    // With one degree of freedom it is Cauchy's distribution.
    for (const t of [-3, 0, 0.5, 1e3]) expect(studentTail(t, 1)).to.be.closeTo(0.5 - Math.atan(t) / Math.PI, 1e-13)
  })

  it('is symmetric, and near the normal distribution with many degrees', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -30, max: 30, noNaN: true }),
        fc.double({ min: 1, max: 1e4, noNaN: true }),
        (t, n) => {
          expect(studentTail(t, n) + studentTail(-t, n)).to.be.closeTo(1, 1e-12)
        },
      ),
    )
    for (const t of [0.5, 1.96, 4]) expect(studentTail(t, 1e7)).to.be.closeTo(normalCdf(-t), 1e-6)
  })

  it('has quantiles that its tail leads back to', () => {
    expect(studentQuantile(0.025, 10)).to.be.closeTo(2.2281388519862753, 1e-10)
    for (const degrees of [1, 2.5, 29])
      for (const tail of [0.4, 0.05, 1e-4])
        expect(studentTail(studentQuantile(tail, degrees), degrees)).to.be.closeTo(tail, 1e-9)
  })

  it('has the logarithm of the factorial', () => {
    expect(logGamma(5)).to.be.closeTo(Math.log(24), 1e-13)
    expect(logGamma(0.5)).to.be.closeTo(Math.log(Math.PI) / 2, 1e-13)
  })

  it('has the values of SciPy when it is not central', () => {
    const values = [
      [3, 9, 1.5, 0.8782479479827304],
      [5, 1, 2, 0.6935374174878984],
      [2, 20.5, -1, 0.9977931727023309],
      [0.5, 3, 2.2, 0.04397615447688712],
    ] as const
    for (const [t, degrees, shift, value] of values) expect(noncentralCdf(t, degrees, shift)).to.be.closeTo(value, 1e-6)
    expect(noncentralCdf(1.3, 7, 0)).to.equal(1 - studentTail(1.3, 7))
  })
})
