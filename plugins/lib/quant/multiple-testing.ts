import { normalCdf, normalQuantile } from './normal-distribution.ts'

/**
 * The two-sided p value of a Sharpe ratio per observation, 2·Φ(-|SR|·√T).
 *
 * Source: Harvey and Liu, "Backtesting", J. Portfolio Management 42 (2015), section 3.
 *
 * @example sharpePValue(0.75, 20) // 0.000796…: an annual 0.75 over 20 years
 */
export function sharpePValue(sharpe: number, observations: number): number {
  return 2 * normalCdf(-Math.abs(sharpe) * Math.sqrt(observations))
}

/**
 * The Sharpe ratio per observation that has the two-sided p value `p`: Z(1 - p/2)/√T. It is 0 at p = 1. A `p` of 0 counts
 * as the smallest positive number, so the result is finite.
 *
 * @example sharpeOfPValue(0.16, 20) // 0.3141…
 */
export function sharpeOfPValue(p: number, observations: number): number {
  return -normalQuantile(Math.max(Math.min(p, 1) / 2, Number.MIN_VALUE)) / Math.sqrt(observations)
}

export interface Haircut {
  /** The p value after adjustment for the number of tests. */
  readonly p: number
  /** The Sharpe ratio that the adjusted p value implies, per observation, with the sign of the original ratio. */
  readonly sharpe: number
  /** The share of the Sharpe ratio that is lost, 0 to 1. */
  readonly haircut: number
}

interface Haircuts {
  /** The p value before adjustment. */
  readonly p: number
  readonly bonferroni: Haircut
  readonly sidak: Haircut
  /** Null unless the p values of the other tests are known. */
  readonly holm: Haircut | null
  readonly bhy: Haircut | null
}

/**
 * Haircut Sharpe ratios: the Sharpe ratio (per observation, over `observations`) that remains after allowing for `tests`
 * tests. With `others`, the p values of the other tests, the result also holds the adjustments of Holm and of Benjamini,
 * Hochberg and Yekutieli. `tests` counts all tests, including this one. `p` is the p value of the ratio; an exact one may
 * replace that of a large sample.
 *
 * Source: Harvey and Liu, "Backtesting", J. Portfolio Management 42 (2015). Their example: an annual 0.75 over 20 years,
 * one of 200 tests, has a Bonferroni p value of 0.16 and an adjusted Sharpe ratio of 0.32, a haircut of 60%.
 *
 * @example haircuts(0.75, 20, 200).bonferroni // { p: 0.1592…, sharpe: 0.3148…, haircut: 0.5803… }
 */
export function haircuts(
  sharpe: number,
  observations: number,
  tests: number,
  others?: readonly number[],
  p = sharpePValue(sharpe, observations),
): Haircuts {
  const cut = (adjusted: number): Haircut => {
    const size = adjusted <= p ? Math.abs(sharpe) : sharpeOfPValue(adjusted, observations)
    return { p: adjusted, sharpe: Math.sign(sharpe) * size, haircut: sharpe === 0 ? 0 : 1 - size / Math.abs(sharpe) }
  }
  const all = others && [p, ...others]
  return {
    p,
    bonferroni: cut(bonferroni(p, tests)),
    sidak: cut(sidak(p, tests)),
    holm: all ? cut(holm(all)[0]!) : null,
    bhy: all ? cut(bhy(all)[0]!) : null,
  }
}

/**
 * Bonferroni's adjustment, min(1, m·p).
 *
 * Source: Harvey and Liu, "Backtesting", J. Portfolio Management 42 (2015), section 4.
 *
 * @example bonferroni(0.0008, 200) // 0.16
 */
export function bonferroni(p: number, tests: number): number {
  return Math.min(1, p * tests)
}

/**
 * Šidák's adjustment, 1 - (1-p)^m. It is exact for independent tests.
 *
 * Source: Z. Šidák, J. American Statistical Association 62 (1967) 626-633.
 *
 * @example sidak(0.0008, 200) // 0.147910…
 */
export function sidak(p: number, tests: number): number {
  return -Math.expm1(tests * Math.log1p(-p))
}

/**
 * Holm's step-down adjustment: the i-th smallest of m p values becomes the running maximum of (m-i+1)·p. The result has
 * the order of the input.
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
 * The step-up adjustment of Benjamini, Hochberg and Yekutieli, valid under any dependence. The i-th smallest p value
 * becomes the running minimum, from the largest down, of p·m·c(m)/i with c(m) = Σ 1/j. The largest p value stays as it
 * is, as in Harvey and Liu. The result has the order of the input.
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
