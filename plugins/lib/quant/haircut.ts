import { bonferroni, bhy, holm, sidak } from './adjustment.ts'
import { normalCdf, normalQuantile } from './normal.ts'

/**
 * Two-sided p value of a Sharpe ratio per observation, 2·Φ(-|SR|·√T).
 *
 * @example sharpePValue(0.75, 20) // 0.000796…: an annual 0.75 over 20 years
 */
export function sharpePValue(sharpe: number, observations: number): number {
  return 2 * normalCdf(-Math.abs(sharpe) * Math.sqrt(observations))
}

/**
 * The Sharpe ratio per observation whose two-sided p value is `p`: Z(1 - p/2)/√T. 0 at p = 1. The smallest positive
 * number stands for p = 0.
 *
 * @example sharpeOfPValue(0.16, 20) // 0.3141…
 */
export function sharpeOfPValue(p: number, observations: number): number {
  return -normalQuantile(Math.max(Math.min(p, 1) / 2, Number.MIN_VALUE)) / Math.sqrt(observations)
}

export interface Haircut {
  /** The p value adjusted for the number of tests. */
  readonly p: number
  /** The Sharpe ratio the adjusted p value implies, per observation, with the sign of the one given. */
  readonly sharpe: number
  /** Share of the Sharpe ratio lost, 0 to 1. */
  readonly haircut: number
}

export interface Haircuts {
  /** The p value of one test alone. */
  readonly p: number
  readonly bonferroni: Haircut
  readonly sidak: Haircut
  /** Need the p values of the other tests. */
  readonly holm: Haircut | null
  readonly bhy: Haircut | null
}

/**
 * Haircut Sharpe ratios: what is left of a Sharpe ratio (per observation, over `observations`) when it is one of
 * `tests`. With `others`, the p values of the other tests tried, Holm and Benjamini-Hochberg-Yekutieli are given too
 * and `tests` counts them all.
 *
 * Source: Harvey and Liu, "Backtesting", J. Portfolio Management 42 (2015). Their example: an annual 0.75 over 20 years,
 * one of 200 tests, has a Bonferroni p value of 0.16 and an adjusted Sharpe ratio of 0.32, a haircut of 60%.
 *
 * @example haircuts(0.75, 20, 200).bonferroni // { p: 0.1592…, sharpe: 0.3148…, haircut: 0.5803… }
 */
export function haircuts(sharpe: number, observations: number, tests: number, others?: readonly number[]): Haircuts {
  const p = sharpePValue(sharpe, observations)
  const cut = (adjusted: number): Haircut => {
    const left = adjusted <= p ? Math.abs(sharpe) : sharpeOfPValue(adjusted, observations)
    return { p: adjusted, sharpe: Math.sign(sharpe) * left, haircut: sharpe === 0 ? 0 : 1 - left / Math.abs(sharpe) }
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
