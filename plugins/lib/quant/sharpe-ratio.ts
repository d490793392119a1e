import { normalCdf, normalQuantile } from './normal-distribution.ts'
import { noncentralCdf } from './student-t.ts'

export interface SharpeSample {
  /** Sharpe ratio per observation, never annualised. */
  readonly sharpe: number
  /** Number of returns, at least 2. */
  readonly observations: number
  /** Population skewness of the returns. The default is 0, that of a normal distribution. */
  readonly skewness?: number
  /** Raw population kurtosis of the returns, at least skewness² + 1. The default is 3, that of a normal distribution. */
  readonly kurtosis?: number
}

/**
 * T times the variance of a Sharpe ratio, 1 - γ3·SR + (γ4 - 1)/4·SR². It shows how much skew and fat tails widen the
 * distribution of the ratio. It is never negative for a possible sample, because kurtosis ≥ skewness² + 1; for one that has
 * two values, rounding could make it so.
 *
 * Source: Mertens (2002); Bailey and López de Prado, "The Sharpe ratio efficient frontier", J. Risk 15 (2012) eq. 4.
 *
 * @example sharpeVariance({ sharpe: 0.458, observations: 24, skewness: -2.448, kurtosis: 10.164 }) // 2.60173…
 */
function sharpeVariance({ sharpe, skewness = 0, kurtosis = 3 }: SharpeSample): number {
  return Math.max(0, 1 - skewness * sharpe + ((kurtosis - 1) / 4) * sharpe * sharpe)
}

/**
 * The probabilistic Sharpe ratio (PSR): the probability that the true Sharpe ratio is above `benchmark` (per
 * observation), Φ((SR - SR*)·√(T-1) / √(1 - γ3·SR + (γ4-1)/4·SR²)). NaN for fewer than two observations.
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

/** From this number of independent bets on, the probabilistic Sharpe ratio is as good as exact. */
export const LARGE_SAMPLE = 30

/**
 * The probabilistic Sharpe ratio of a sample that may be small. With fewer than 30 `bets`, it is at most the exact
 * probability for normal returns: the noncentral t distribution with bets - 1 degrees of freedom at SR·√T, shifted by
 * SR*·√T. The formula for large samples takes two returns of 1.00 % and 1.10 % for certain (1 - 1e-50), but such a pair of
 * worthless returns is as good 1.5 % of the time. `bets` is the number of returns unless they depend on each other.
 *
 * Source: W. S. Gosset ("Student"), "The probable error of a mean", Biometrika 6 (1908); see `noncentralCdf`.
 *
 * @example smallSampleSharpe({ sharpe: 21 / Math.sqrt(2), observations: 2, kurtosis: 1 }) // 0.98485…
 */
export function smallSampleSharpe(sample: SharpeSample, benchmark = 0, bets = sample.observations): number {
  const large = probabilisticSharpe(sample, benchmark)
  if (!(bets < LARGE_SAMPLE)) return large
  const root = Math.sqrt(sample.observations)
  return Math.min(large, noncentralCdf(sample.sharpe * root, Math.max(1, bets - 1), benchmark * root))
}

interface DeflatedSharpe {
  /** Probability that the true Sharpe ratio exceeds what the best of the trials would show by luck alone. */
  readonly dsr: number
  /** SR0, the Sharpe ratio that luck alone explains: the expected maximum of worthless trials, per observation. */
  readonly benchmark: number
}

/**
 * The deflated Sharpe ratio (DSR): the probabilistic Sharpe ratio against SR0 = √V·E[max of N]. `variance` is the variance
 * of the trials' Sharpe ratios per observation. The default is 1/(T-1), the sampling variance of a worthless trial.
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

/** Euler-Mascheroni constant. */
const GAMMA = 0.5772156649015329

/**
 * The expected maximum of `trials` independent standard normal numbers, (1-γ)·Z(1 - 1/N) + γ·Z(1 - 1/(N·e)). It is 0 for
 * one trial, because there is nothing to choose from, and NaN below one.
 *
 * Source: Bailey, Borwein, López de Prado and Zhu, "Pseudo-mathematics and financial charlatanism", Notices of the AMS
 * 61 (2014), proposition 1.
 *
 * @example expectedMaximum(10) // 1.57460…
 */
export function expectedMaximum(trials: number): number {
  if (!(trials >= 1)) return Number.NaN
  if (trials === 1) return 0
  return -(1 - GAMMA) * normalQuantile(1 / trials) - GAMMA * normalQuantile(1 / (trials * Math.E))
}

/**
 * The minimum track record length: the number of observations at which a Sharpe ratio is above `benchmark` with the given
 * confidence, 1 + (1 - γ3·SR + (γ4-1)/4·SR²)·(Z/(SR - SR*))². Infinity if the Sharpe ratio is not above the benchmark.
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

interface BacktestLength {
  /** In a shorter backtest, the best of the trials is expected to reach the Sharpe ratio by luck: (E[max]/SR)². */
  readonly years: number
  /** The simple upper bound 2·ln N / SR². */
  readonly bound: number
}

/**
 * The minimum backtest length in years, for an annualised Sharpe ratio and a number of independent trials. Infinity if
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

/**
 * Lo's factor η(q) = q / √(q + 2 Σ_{k<q} (q-k)·ρ_k), which converts a Sharpe ratio per observation into one over q
 * observations, given the autocorrelations ρ_1, ρ_2, … (missing lags count as 0). It is √q if they are all 0, and NaN if
 * they imply a variance that is not positive.
 *
 * Source: A. W. Lo, "The statistics of Sharpe ratios", Financial Analysts Journal 58 (2002) eq. 20.
 *
 * @example sharpeScale(12, Array.from({ length: 11 }, (_, k) => 0.2 ** (k + 1))) // 2.87884…, where √12 is 3.46410…
 */
export function sharpeScale(periods: number, correlations: ArrayLike<number>): number {
  let sum = periods
  const lags = Math.min(Math.ceil(periods) - 1, correlations.length)
  for (let k = 1; k <= lags; k += 1) sum += 2 * (periods - k) * correlations[k - 1]!
  return sum > 0 ? periods / Math.sqrt(sum) : Number.NaN
}

/**
 * The standard error of a Sharpe ratio of independent, identically distributed returns, √((1 + SR²/2)/T), per
 * observation.
 *
 * Source: A. W. Lo, "The statistics of Sharpe ratios", Financial Analysts Journal 58 (2002) eq. 8.
 *
 * @example sharpeError(0.5, 60) // 0.1369306…
 */
export function sharpeError(sharpe: number, observations: number): number {
  return Math.sqrt((1 + (sharpe * sharpe) / 2) / observations)
}
