/**
 * The normal equations of ordinary least squares. Only X'X and X'y are stored, so a fit with k regressors needs k² numbers
 * for any number of rows.
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
 * Adds an observation of the regressors at `places`, which ascend; all others are 0 (include the constant 1 for an
 * intercept).
 */
export function addObservation(
  equations: NormalEquations,
  places: ArrayLike<number>,
  values: ArrayLike<number>,
  outcome: number,
): void {
  const { size, products, moments } = equations
  for (let a = 0; a < places.length; a += 1) {
    const value = values[a]!
    const row = places[a]! * size
    for (let b = 0; b <= a; b += 1) products[row + places[b]!]! += value * values[b]!
    moments[places[a]!]! += value * outcome
  }
  equations.rows += 1
}

/**
 * Draws each coefficient towards an expected one, as `strengths` observations of that regressor alone at 1 would (ridge
 * regression).
 */
export function addExpected(
  { size, products, moments }: NormalEquations,
  expected: ArrayLike<number>,
  strengths: ArrayLike<number>,
): void {
  for (let i = 0; i < size; i += 1) {
    products[i * size + i]! += strengths[i]!
    moments[i]! += strengths[i]! * expected[i]!
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
