import { normalCdf } from './normal.ts'

export interface SharpeSample {
  /** Sharpe ratio per observation, never annualised. */
  readonly sharpe: number
  /** Number of returns, at least 2. */
  readonly observations: number
  /** Population skewness of the returns; 0 for a normal. */
  readonly skewness?: number
  /** Raw population kurtosis of the returns; 3 for a normal. At least skewness² + 1. */
  readonly kurtosis?: number
}

/**
 * The factor 1 - γ3·SR + (γ4 - 1)/4·SR² by which skew and fat tails stretch the variance of a Sharpe ratio, T times
 * that variance. Never negative when kurtosis ≥ skewness² + 1, as every sample's is.
 *
 * Source: Mertens (2002); Bailey and López de Prado, "The Sharpe ratio efficient frontier", J. Risk 15 (2012) eq. 4.
 *
 * @example sharpeVariance({ sharpe: 0.458, observations: 24, skewness: -2.448, kurtosis: 10.164 }) // 2.60173…
 */
export function sharpeVariance({ sharpe, skewness = 0, kurtosis = 3 }: SharpeSample): number {
  return 1 - skewness * sharpe + ((kurtosis - 1) / 4) * sharpe * sharpe
}

/**
 * Probabilistic Sharpe ratio: the probability that the true Sharpe ratio is above `benchmark` (per observation, default
 * 0), Φ((SR - SR*)·√(T-1) / √(1 - γ3·SR + (γ4-1)/4·SR²)). NaN below two observations.
 *
 * Source: Bailey and López de Prado, "The Sharpe ratio efficient frontier", J. Risk 15 (2012) eq. 9. Their example: 24
 * monthly returns, SR 0.458, skewness -2.448, kurtosis 10.164 give 0.913; taken as normal, 0.982.
 *
 * @example probabilisticSharpe({ sharpe: 0.458, observations: 24, skewness: -2.448, kurtosis: 10.164 }) // 0.9134…
 */
export function probabilisticSharpe(sample: SharpeSample, benchmark = 0): number {
  if (!(sample.observations >= 2)) return Number.NaN
  const distance = (sample.sharpe - benchmark) * Math.sqrt(sample.observations - 1)
  if (distance === 0) return 0.5
  return normalCdf(distance / Math.sqrt(sharpeVariance(sample)))
}
