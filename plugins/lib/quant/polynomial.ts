/**
 * Value of a polynomial by Horner's rule, coefficients in ascending order of power.
 *
 * @example polynomial([1, 2, 3], 2) // 1 + 2·2 + 3·4 = 17
 */
export function polynomial(coefficients: readonly number[], x: number): number {
  let value = 0
  for (let power = coefficients.length - 1; power >= 0; power -= 1) value = value * x + coefficients[power]!
  return value
}
