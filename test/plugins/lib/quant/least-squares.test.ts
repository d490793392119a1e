import { expect } from 'chai'
import fc from 'fast-check'
import { addRow, createNormalEquations, solveNormalEquations } from '../../../../plugins/lib/quant/least-squares.ts'

function fit(rows: readonly (readonly number[])[], outcomes: readonly number[]): number[] {
  const equations = createNormalEquations(rows[0]!.length)
  rows.forEach((row, i) => addRow(equations, row, outcomes[i]!))
  return [...solveNormalEquations(equations)]
}

describe('least squares', () => {
  it("finds the published coefficients of Anscombe's first data set", () => {
    // Anscombe, "Graphs in statistical analysis", The American Statistician 27 (1973): y = 3.0001 + 0.5001 x.
    const x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
    const y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    const [slope, constant] = fit(
      x.map((value) => [value, 1]),
      y,
    )
    expect(slope).to.be.closeTo(0.5001, 5e-5)
    expect(constant).to.be.closeTo(3.0001, 5e-5)
  })

  it('recovers the plane from which the data was generated', () => {
    const coefficient = fc.double({ min: -10, max: 10, noNaN: true })
    const row = fc.tuple(fc.double({ min: -5, max: 5, noNaN: true }), fc.double({ min: -5, max: 5, noNaN: true }))
    fc.assert(
      fc.property(
        fc.tuple(coefficient, coefficient, coefficient),
        fc.array(row, { minLength: 6, maxLength: 40 }),
        ([a, b, c], points) => {
          const spread = [...points, [3, -2], [-4, 1], [0, 5], [2, 2]] as [number, number][]
          const found = fit(
            spread.map(([x, z]) => [x, z, 1]),
            spread.map(([x, z]) => a * x + b * z + c),
          )
          for (const [i, value] of [a, b, c].entries()) expect(found[i]).to.be.closeTo(value, 1e-6)
        },
      ),
    )
  })

  it('gives a duplicate regressor the coefficient 0', () => {
    const [first, duplicate, constant] = fit(
      [1, 2, 3, 4].map((x) => [x, x, 1]),
      [3, 5, 7, 9],
    )
    expect([first, duplicate, constant].map((value) => Math.round(value! * 1e9) / 1e9)).to.deep.equal([2, 0, 1])
  })

  it('throws without any rows', () => {
    expect(() => solveNormalEquations(createNormalEquations(2))).to.throw(RangeError)
  })
})
