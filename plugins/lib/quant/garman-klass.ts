/**
 * Variance of a bar by Garman and Klass, 0.5 ln(H/L)² - (2 ln 2 - 1) ln(C/O)²: about seven times as efficient as the
 * squared return for a path without drift or gaps. Not negative for a possible bar.
 *
 * Source: Garman and Klass, "On the estimation of security price volatilities from historical data", J. Business 53
 * (1980), the practical form of their equation 20.
 *
 * @example garmanKlass(100, 102, 99, 101) // 0.5·ln(102/99)² - 0.386294·ln(1.01)² = 0.000407…
 */
export function garmanKlass(open: number, high: number, low: number, close: number): number {
  const range = Math.log(high / low)
  const body = Math.log(close / open)
  return 0.5 * range * range - (2 * Math.LN2 - 1) * body * body
}
