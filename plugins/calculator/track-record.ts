import {
  deflatedSharpe,
  probabilisticSharpe,
  type SharpeSample,
  minimumBacktest,
  minimumTrackRecord,
} from '../lib/quant/sharpe-ratio.ts'

export interface Track {
  /** Annualised Sharpe ratio. */
  readonly sharpe: number
  /** Number of returns, at least 2. They are daily unless `periodsPerYear` says otherwise. */
  readonly days: number
  /** How many strategies were tried, including this one; at least 1. */
  readonly trials: number
  /** Population skewness of the returns. */
  readonly skew?: number
  /** Raw population kurtosis, at least skew² + 1. A normal distribution has 3. */
  readonly kurt?: number
  /** Variance of the trials' annualised Sharpe ratios. Default: the sampling variance of a strategy without skill. */
  readonly srVariance?: number
  /** Observations per year; default 252. */
  readonly periodsPerYear?: number
}

export interface Deflated {
  /** Probability that the true Sharpe ratio is above the one that the best trial shows by luck. */
  readonly dsr: number
  /** Probability that the true Sharpe ratio is above zero, as if there were only one trial. */
  readonly psr: number
  /** Expected maximum Sharpe ratio of trials without skill, annualised. */
  readonly sr0: number
  /** Observations needed to show a Sharpe ratio above zero at 95%; Infinity if it is not positive. */
  readonly minTrackDays: number
  readonly minTrackYears: number
  /** In fewer years, luck alone is expected to reach this Sharpe ratio. */
  readonly minBacktestYears: number
}

/** Converts a track record to the Sharpe ratio per observation, and the variance of the trials to the same unit. */
export function sampleOf(track: Track): { readonly sample: SharpeSample; readonly variance: number } {
  const { sharpe, days, skew = 0, kurt = 3, srVariance, periodsPerYear = 252 } = track
  return {
    sample: { sharpe: sharpe / Math.sqrt(periodsPerYear), observations: days, skewness: skew, kurtosis: kurt },
    variance: srVariance === undefined ? 1 / (days - 1) : srVariance / periodsPerYear,
  }
}

/**
 * Deflates an annualised Sharpe ratio for the number of trials. The formulas use the ratio per observation,
 * sharpe/√periodsPerYear.
 *
 * Source: Bailey and López de Prado, "The deflated Sharpe ratio", J. Portfolio Management 40 (2014).
 *
 * @example calculate({ sharpe: 2.5, days: 1250, trials: 100, skew: -3, kurt: 10, srVariance: 0.5, periodsPerYear: 250 })
 * // dsr 0.9004, sr0 1.7894: the paper's example
 */
export function calculate(track: Track): Deflated {
  const { sharpe, trials, periodsPerYear = 252 } = track
  const { sample, variance } = sampleOf(track)
  const { dsr, benchmark } = deflatedSharpe(sample, trials, variance)
  const record = minimumTrackRecord(sample)
  return {
    dsr,
    psr: probabilisticSharpe(sample),
    sr0: benchmark * Math.sqrt(periodsPerYear),
    minTrackDays: record,
    minTrackYears: record / periodsPerYear,
    minBacktestYears: minimumBacktest(sharpe, trials).years,
  }
}
