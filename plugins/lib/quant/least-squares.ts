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

/**
 * Adds observations: `columns` has the values of each regressor (include the constant 1 for an intercept). The sums are
 * those of one observation after the other. Four run beside each other, because each waits for its own last addition.
 */
export function addColumns(equations: NormalEquations, columns: readonly Float64Array[], outcomes: Float64Array): void {
  const { size, products, moments } = equations
  const rows = outcomes.length
  for (let i = 0; i < size; i += 1) {
    const values = columns[i]!
    // The products with every regressor up to this one, and with the outcome.
    for (let j = 0; j <= i + 1; j += 4) {
      const [a, b, c, d] = [0, 1, 2, 3].map((k) => (j + k <= i ? columns[j + k]! : outcomes)) as [
        Float64Array,
        Float64Array,
        Float64Array,
        Float64Array,
      ]
      const at = i * size + j
      const start = (k: number): number => (j + k <= i ? products[at + k]! : moments[i]!)
      let [p, q, r, s] = [start(0), start(1), start(2), start(3)]
      for (let row = 0; row < rows; row += 1) {
        const value = values[row]!
        p += value * a[row]!
        q += value * b[row]!
        r += value * c[row]!
        s += value * d[row]!
      }
      const sums = [p, q, r, s]
      for (let k = 0; k < 4; k += 1)
        if (j + k <= i) products[at + k] = sums[k]!
        else if (j + k === i + 1) moments[i] = sums[k]!
    }
  }
  equations.rows += rows
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
