/**
 * Ordinary least squares by the normal equations, gathered row by row: X'X and X'y are all that is kept, so a fit over
 * any number of rows needs k² numbers.
 */
export interface NormalEquations {
  readonly size: number
  rows: number
  /** X'X, row by row, lower triangle in use. */
  readonly products: Float64Array
  /** X'y. */
  readonly moments: Float64Array
}

/** No rows yet, for `size` regressors. */
export function createNormalEquations(size: number): NormalEquations {
  return { size, rows: 0, products: new Float64Array(size * size), moments: new Float64Array(size) }
}

/** Adds one observation: its regressors (the constant among them) and its outcome. */
export function addRow(equations: NormalEquations, regressors: ArrayLike<number>, outcome: number): void {
  const { size, products, moments } = equations
  for (let i = 0; i < size; i += 1) {
    const value = regressors[i]!
    for (let j = 0; j <= i; j += 1) products[i * size + j]! += value * regressors[j]!
    moments[i]! += value * outcome
  }
  equations.rows += 1
}

/**
 * The coefficients that minimise the squared error, by Cholesky factors of X'X. A regressor that the ones before it
 * explain to within 1e-10 of its square gets the coefficient 0. RangeError where there are no rows.
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
