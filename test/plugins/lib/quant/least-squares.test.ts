import { expect } from 'chai'
import fc from 'fast-check'
import {
  addExpected,
  addObservation,
  createNormalEquations,
  solveNormalEquations,
} from '../../../../plugins/lib/quant/least-squares.ts'

function fit(rows: readonly (readonly number[])[], outcomes: readonly number[]): number[] {
  const equations = createNormalEquations(rows[0]!.length)
  for (const [n, row] of rows.entries()) addObservation(equations, [...row.keys()], row, outcomes[n]!)
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

  it('adds the products of one observation after the other, for any number of regressors that are not 0', () => {
    const number = fc.oneof(fc.constant(0), fc.double({ min: -1e6, max: 1e6, noNaN: true }))
    const table = fc.integer({ min: 1, max: 14 }).chain((size) => {
      const row = fc.tuple(fc.array(number, { minLength: size, maxLength: size }), number)
      return fc.tuple(fc.constant(size), fc.array(row, { maxLength: 30 }))
    })
    fc.assert(
      fc.property(table, ([size, rows]) => {
        const equations = createNormalEquations(size)
        const [products, moments] = [new Float64Array(size * size), new Float64Array(size)]
        for (const [values, outcome] of rows) {
          const places = [...values.keys()].filter((i) => values[i] !== 0)
          addObservation(
            equations,
            places,
            places.map((i) => values[i]!),
            outcome,
          )
          for (const i of places) {
            for (const j of places) if (j <= i) products[i * size + j]! += values[i]! * values[j]!
            moments[i]! += values[i]! * outcome
          }
        }
        expect([equations.rows, equations.products, equations.moments]).to.deep.equal([rows.length, products, moments])
      }),
    )
  })

  it('draws coefficients towards those expected, the more the stronger', () => {
    const drawn = (strength: number): number => {
      const equations = createNormalEquations(1)
      for (const x of [1, 2, 3]) addObservation(equations, [0], [x], 2 * x)
      addExpected(equations, [5], [strength])
      return solveNormalEquations(equations)[0]!
    }
    // (14 × 2 + strength × 5) / (14 + strength)
    expect([0, 7, 14, 1e9].map(drawn).map((value) => Math.round(value * 1e6) / 1e6)).to.deep.equal([2, 3, 3.5, 5])
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
