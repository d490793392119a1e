import { expectedMaximum } from './maximum.ts'
import { normalQuantile } from './normal.ts'
import { sharpeVariance, type SharpeSample } from './psr.ts'

/**
 * Minimum track record length: how many observations it takes before a Sharpe ratio is above `benchmark` at the given
 * confidence, 1 + (1 - γ3·SR + (γ4-1)/4·SR²)·(Z/(SR - SR*))². Infinity where the Sharpe ratio is not above it.
 *
 * Source: Bailey and López de Prado, "The Sharpe ratio efficient frontier", J. Risk 15 (2012) eq. 11. Their example:
 * an annual SR of 2 above 1, daily normal returns, 95%: 2.73 years.
 *
 * @example minimumTrackRecord({ sharpe: 2 / Math.sqrt(252) }, 1 / Math.sqrt(252)) // 688.2… days, 2.731 years
 */
export function minimumTrackRecord(
  sample: Omit<SharpeSample, 'observations'>,
  benchmark = 0,
  confidence = 0.95,
): number {
  if (sample.sharpe <= benchmark) return Infinity
  const deviations = normalQuantile(confidence) / (sample.sharpe - benchmark)
  return 1 + sharpeVariance({ ...sample, observations: Infinity }) * deviations * deviations
}

export interface BacktestLength {
  /** Years below which the best of the trials is expected to reach the Sharpe ratio by luck: (E[max]/SR)². */
  readonly years: number
  /** The simple upper bound 2·ln N / SR². */
  readonly bound: number
}

/**
 * Minimum backtest length in years, for an annualised Sharpe ratio and a number of independent trials. Infinity where
 * the Sharpe ratio is not positive; 0 for one trial.
 *
 * Source: Bailey, Borwein, López de Prado and Zhu, "Pseudo-mathematics and financial charlatanism", Notices of the AMS
 * 61 (2014), theorem 1. Their example: five years allow no more than 45 trials for an annual SR of 1.
 *
 * @example minimumBacktest(1, 45) // { years: 4.998…, bound: 7.613… }
 */
export function minimumBacktest(sharpe: number, trials: number): BacktestLength {
  if (!(sharpe > 0)) return { years: Infinity, bound: Infinity }
  const maximum = expectedMaximum(trials)
  return { years: (maximum / sharpe) ** 2, bound: (2 * Math.log(trials)) / (sharpe * sharpe) }
}
