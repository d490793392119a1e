/**
 * The normal equations of ordinary least squares. Only X'X and X'y are stored, so a fit with k regressors needs k² numbers
 * for any number of rows, which may be added in parts.
 */
export interface NormalEquations {
  readonly size: number
  rows: number
  /** X'X in row order; only the lower triangle is used. */
  readonly products: Float64Array
  /** X'y. */
  readonly moments: Float64Array
}

/** Creates empty normal equations for `size` regressors. */
export function createNormalEquations(size: number): NormalEquations {
  return { size, rows: 0, products: new Float64Array(size * size), moments: new Float64Array(size) }
}

/** Adds observations: `columns` has the values of each regressor (include the constant 1 for an intercept). */
export function addColumns(equations: NormalEquations, columns: readonly Float64Array[], outcomes: Float64Array): void {
  const { size, products, moments } = equations
  for (const [i, values] of columns.entries()) {
    // Row i of the lower triangle of X'X, and behind it the entry of X'y.
    const sums = Float64Array.of(...products.subarray(i * size, i * size + i + 1), moments[i]!)
    addProducts(sums, values, [...columns.slice(0, i + 1), outcomes])
    products.set(sums.subarray(0, i + 1), i * size)
    moments[i] = sums[i + 1]!
  }
  equations.rows += outcomes.length
}

/**
 * Adds the inner product of `values` with each of `others` to its sum, one row after the other. Four sums grow at a time,
 * because one alone would wait for its own last addition.
 */
function addProducts(sums: Float64Array, values: Float64Array, others: readonly Float64Array[]): void {
  for (let first = 0; first < others.length; first += 4) {
    const [a = values, b = a, c = a, d = a] = others.slice(first, first + 4)
    let [p = 0, q = 0, r = 0, s = 0] = sums.subarray(first, first + 4)
    for (let row = 0; row < values.length; row += 1) {
      const value = values[row]!
      p += value * a[row]!
      q += value * b[row]!
      r += value * c[row]!
      s += value * d[row]!
    }
    sums.set([p, q, r, s].slice(0, others.length - first), first)
  }
}

/**
 * Returns the coefficients that minimise the squared error, by the Cholesky factorisation of X'X. A regressor that
 * earlier regressors explain to within 1e-10 of its square gets the coefficient 0. Throws RangeError if no rows were
 * added.
 *
 * Source: Golub and Van Loan, "Matrix computations", algorithm 4.2.1 and section 5.3.2.
 *
 * @example rows (1, 1) → 3, (1, 2) → 5, (1, 3) → 7.3 give 0.8 + 2.15x
 */
export function solveNormalEquations(equations: NormalEquations): Float64Array {
  const { size, products, moments, rows } = equations
  if (rows === 0) throw new RangeError('least squares needs at least one row')
  const factor = new Float64Array(size * size)
  for (let i = 0; i < size; i += 1) {
    for (let j = 0; j <= i; j += 1) {
      let rest = products[i * size + j]!
      for (let k = 0; k < j; k += 1) rest -= factor[i * size + k]! * factor[j * size + k]!
      if (j < i) factor[i * size + j] = factor[j * size + j] === 0 ? 0 : rest / factor[j * size + j]!
      else factor[i * size + i] = rest > 1e-10 * products[i * size + i]! ? Math.sqrt(rest) : 0
    }
  }
  const solution = new Float64Array(size)
  for (let i = 0; i < size; i += 1) {
    let rest = moments[i]!
    for (let k = 0; k < i; k += 1) rest -= factor[i * size + k]! * solution[k]!
    solution[i] = factor[i * size + i] === 0 ? 0 : rest / factor[i * size + i]!
  }
  for (let i = size - 1; i >= 0; i -= 1) {
    let rest = solution[i]!
    for (let k = i + 1; k < size; k += 1) rest -= factor[k * size + i]! * solution[k]!
    solution[i] = factor[i * size + i] === 0 ? 0 : rest / factor[i * size + i]!
  }
  return solution
}
