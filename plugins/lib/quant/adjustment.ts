/**
 * Adjustments of p values for many tests, as used by Harvey and Liu, "Backtesting", J. Portfolio Management 42 (2015).
 * Each is at least as large as the p value it came from and at most 1.
 */

/**
 * Bonferroni: min(1, m·p).
 *
 * @example bonferroni(0.0008, 200) // 0.16
 */
export function bonferroni(p: number, tests: number): number {
  return Math.min(1, p * tests)
}

/**
 * Šidák: 1 - (1-p)^m, exact for independent tests.
 *
 * Source: Z. Šidák, J. American Statistical Association 62 (1967) 626-633.
 *
 * @example sidak(0.0008, 200) // 0.147910…
 */
export function sidak(p: number, tests: number): number {
  return -Math.expm1(tests * Math.log1p(-p))
}

/**
 * Holm's step-down: the i-th smallest of m p values becomes the running maximum of (m-i+1)·p. Answers in the order
 * given.
 *
 * Source: S. Holm, Scandinavian J. Statistics 6 (1979) 65-70.
 *
 * @example holm([0.01, 0.04, 0.03, 0.005]) // [0.03, 0.06, 0.06, 0.02]
 */
export function holm(ps: readonly number[]): number[] {
  const order = ascending(ps)
  const adjusted = Array<number>(ps.length).fill(1)
  let running = 0
  for (const [rank, index] of order.entries()) {
    running = Math.max(running, Math.min(1, (ps.length - rank) * ps[index]!))
    adjusted[index] = running
  }
  return adjusted
}

/**
 * Benjamini, Hochberg and Yekutieli's step-up, valid under any dependence: the i-th smallest becomes the running minimum,
 * from the largest down, of p·m·c(m)/i with c(m) = Σ 1/j; as Harvey and Liu do, the largest p value is kept as it is.
 *
 * Source: Benjamini and Yekutieli, Annals of Statistics 29 (2001) 1165-1188; Harvey and Liu (2015) section 4.
 *
 * @example bhy([0.005, 0.009, 0.0128]) // [0.0128, 0.0128, 0.0128]
 */
export function bhy(ps: readonly number[]): number[] {
  const order = ascending(ps)
  const count = ps.length
  const harmonic = ps.reduce((sum, _, index) => sum + 1 / (index + 1), 0)
  const adjusted = Array<number>(count).fill(1)
  let running = 1
  for (let rank = count; rank >= 1; rank -= 1) {
    const index = order[rank - 1]!
    const stretched = rank === count ? ps[index]! : (ps[index]! * count * harmonic) / rank
    running = Math.min(running, stretched)
    adjusted[index] = running
  }
  return adjusted
}

function ascending(ps: readonly number[]): number[] {
  return ps.map((_, index) => index).sort((a, b) => ps[a]! - ps[b]!)
}
