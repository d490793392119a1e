import { expectedMaximum } from './maximum.ts'
import { probabilisticSharpe, type SharpeSample } from './psr.ts'

export interface DeflatedSharpe {
  /** Probability that the true Sharpe ratio is above what the best of the trials would show by luck alone. */
  readonly dsr: number
  /** That luck: the expected maximum Sharpe ratio of worthless trials, per observation. */
  readonly benchmark: number
}

/**
 * Deflated Sharpe ratio: the probabilistic Sharpe ratio against SR0 = √V·E[max of N]. `variance` is the variance of the
 * trials' Sharpe ratios per observation; without it 1/(T-1), the sampling variance of a worthless trial.
 *
 * Source: Bailey and López de Prado, "The deflated Sharpe ratio", J. Portfolio Management 40 (2014). Their example:
 * annual SR 2.5, 1250 days of 250 a year, skewness -3, kurtosis 10, annual variance 1/2: 0.9004 for N = 100 and 0.9505
 * for N = 46.
 *
 * @example deflatedSharpe({ sharpe: 2.5 / Math.sqrt(250), observations: 1250, skewness: -3, kurtosis: 10 }, 100, 0.5 / 250)
 * // { dsr: 0.90039…, benchmark: 0.11317… }
 */
export function deflatedSharpe(
  sample: SharpeSample,
  trials: number,
  variance = 1 / (sample.observations - 1),
): DeflatedSharpe {
  const benchmark = Math.sqrt(variance) * expectedMaximum(trials)
  return { dsr: probabilisticSharpe(sample, benchmark), benchmark }
}
