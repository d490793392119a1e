import { expect } from 'chai'
import fc from 'fast-check'
import { addColumns, createNormalEquations, solveNormalEquations } from '../../../../plugins/lib/quant/least-squares.ts'

function fit(rows: readonly (readonly number[])[], outcomes: readonly number[]): number[] {
  const equations = createNormalEquations(rows[0]!.length)
  const columns = rows[0]!.map((_, i) => Float64Array.from(rows, (row) => row[i]!))
  addColumns(equations, columns, Float64Array.from(outcomes))
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

  it('adds the products of one observation after the other, for any number of regressors and in any parts', () => {
    const number = fc.double({ min: -1e6, max: 1e6, noNaN: true })
    const table = fc.tuple(fc.integer({ min: 1, max: 14 }), fc.integer({ min: 0, max: 30 })).chain(([size, rows]) =>
      fc.tuple(
        fc.array(fc.array(number, { minLength: rows, maxLength: rows }), {
          minLength: size + 1,
          maxLength: size + 1,
        }),
        fc.integer({ min: 0, max: rows }),
      ),
    )
    fc.assert(
      fc.property(table, ([values, cut]) => {
        const columns = values.map((column) => Float64Array.from(column))
        const outcomes = columns.pop()!
        const size = columns.length
        const equations = createNormalEquations(size)
        for (const part of [[0, cut] as const, [cut] as const])
          addColumns(
            equations,
            columns.map((column) => column.slice(...part)),
            outcomes.slice(...part),
          )
        const [products, moments] = [new Float64Array(size * size), new Float64Array(size)]
        for (let row = 0; row < outcomes.length; row += 1)
          for (let i = 0; i < size; i += 1) {
            for (let j = 0; j <= i; j += 1) products[i * size + j]! += columns[i]![row]! * columns[j]![row]!
            moments[i]! += columns[i]![row]! * outcomes[row]!
          }
        expect([equations.rows, equations.products, equations.moments]).to.deep.equal([
          outcomes.length,
          products,
          moments,
        ])
      }),
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
