import { createBlocks, twoRounds } from './bootstrap.ts'

export interface SuperiorAbility {
  /**
   * P values of "no trial is better than nothing". `consistent` is Hansen's; `lower` and `upper` are its bounds, of which
   * the upper one takes poor trials for as good as nothing.
   */
  readonly consistent: number
  readonly lower: number
  readonly upper: number
  /** P value of White's reality check, which does not divide by the deviation of a trial. */
  readonly realityCheck: number
  /** Number of resamples. */
  readonly draws: number
}

export interface SuperiorAbilityOptions {
  /** Number of resamples. The default is 1,000. */
  readonly draws?: number
  /** Mean length of a block in observations. The default is n^(1/3). */
  readonly meanBlock?: number
  /** The default is 1, so the same trials always give the same p values. */
  readonly seed?: number
}

/** A trial with a smaller deviation than this share of its largest return does not vary. */
const CONSTANT = 1e-12

/**
 * Tests whether the best of several trials is better than nothing, given that it was chosen as the best. `trials` holds one
 * series of returns per trial, all of the same length n. The statistic of Hansen's test for superior predictive ability
 * (SPA) is max(0, max √n·mean/ω), that of White's reality check max √n·mean. Both are compared with resamples of the
 * stationary bootstrap, which draws the same days for all trials. Hansen centres a trial at zero unless its mean is below
 * -ω√(2 ln ln n / n). A p value is (1 + resamples above the statistic) / (1 + resamples), so it is never 0. Returns null
 * for fewer than two trials or three observations, and if no trial varies.
 *
 * Source: P. R. Hansen, "A test for superior predictive ability", J. Business and Economic Statistics 23 (2005) 365-380;
 * H. White, "A reality check for data snooping", Econometrica 68 (2000) 1097-1126.
 *
 * @example trials of 0.031, -0.012, 0.023, 0.009, 0.014 and -0.02, 0.011, -0.034, 0.002, 0.013 with blocks of one: of the
 * // 3,125 possible resamples, 73 exceed the consistent statistic, 36 the lower, 73 the upper, and 218 that of White. So p is
 * // 0.0234, 0.0115, 0.0234 and 0.0698, but for the error of drawing.
 */
export function superiorAbility(
  trials: readonly Float64Array[],
  options: SuperiorAbilityOptions = {},
): SuperiorAbility | null {
  const count = trials[0]?.length ?? 0
  if (trials.length < 2 || count < 3) return null
  const { draws = 1000, meanBlock = Math.max(1, Math.cbrt(count)), seed = 1 } = options
  const series = trials.map((values) => studied(values, meanBlock)).filter(({ deviation }) => deviation > 0)
  if (series.length === 0) return null
  const root = Math.sqrt(count)
  const studentised = series.reduce((most, { mean, deviation }) => Math.max(most, (root * mean) / deviation), 0)
  const plain = series.reduce((most, { mean }) => Math.max(most, root * mean), -Infinity)
  const bound = Math.sqrt((2 * Math.log(Math.log(count))) / count)
  const centres = series.map(({ mean, deviation }) => ({
    consistent: mean >= -deviation * bound ? mean : 0,
    lower: Math.max(mean, 0),
  }))
  const above = { consistent: 0, lower: 0, upper: 0, realityCheck: 0 }
  const blocks = createBlocks(count, meanBlock, seed)
  for (let draw = 0; draw < draws; draw += 1) {
    const length = blocks.draw()
    let [consistent, lower, upper, largest] = [0, 0, 0, -Infinity]
    for (let k = 0; k < series.length; k += 1) {
      const { totals, mean, deviation } = series[k]!
      const centre = centres[k]!
      const drawn = blocks.sum(totals, length) / count
      largest = Math.max(largest, drawn - mean)
      consistent = Math.max(consistent, (drawn - centre.consistent) / deviation)
      lower = Math.max(lower, (drawn - centre.lower) / deviation)
      upper = Math.max(upper, (drawn - mean) / deviation)
    }
    if (root * consistent > studentised) above.consistent += 1
    if (root * lower > studentised) above.lower += 1
    if (root * upper > studentised) above.upper += 1
    if (root * largest > plain) above.realityCheck += 1
  }
  const share = (number: number): number => (1 + number) / (1 + draws)
  return {
    consistent: share(above.consistent),
    lower: share(above.lower),
    upper: share(above.upper),
    realityCheck: share(above.realityCheck),
    draws,
  }
}

interface Studied {
  readonly mean: number
  /** ω, the deviation of √n·mean; 0 if the trial does not vary. */
  readonly deviation: number
  /** Running totals of the returns over two rounds, so that a block may pass the end. */
  readonly totals: Float64Array
}

function studied(values: Float64Array, meanBlock: number): Studied {
  const count = values.length
  const totals = twoRounds(values)
  const variance = bootstrapVariance(values, meanBlock)
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  const deviation = Math.sqrt(Math.max(0, variance))
  return { mean: totals[count]! / count, deviation: deviation > CONSTANT * largest ? deviation : 0, totals }
}

/** Lags with a smaller weight than this do not count. */
const NEGLIGIBLE = 1e-4

/**
 * ω², the variance of √n·mean under the stationary bootstrap: γ0 + 2 Σ κ(i) γi with κ(i) = (n-i)/n (1-q)^i + i/n (1-q)^(n-i)
 * and q = 1/meanBlock.
 *
 * Source: Politis and Romano (1994), lemma 1; Hansen (2005), section 3.
 *
 * @example bootstrapVariance([1, 2, 3, 4], 2) // 0.859375: γ is 1.25, 0.3125, -0.375 and -0.5625, κ is 0.40625, 0.25 and 0.40625
 */
export function bootstrapVariance(values: ArrayLike<number>, meanBlock: number): number {
  const count = values.length
  let mean = 0
  for (let i = 0; i < count; i += 1) mean += values[i]! / count
  const covariance = (lag: number): number => {
    let sum = 0
    for (let i = lag; i < count; i += 1) sum += (values[i]! - mean) * (values[i - lag]! - mean)
    return sum / count
  }
  const stay = 1 - 1 / meanBlock
  let variance = covariance(0)
  for (let lag = 1; lag < count; lag += 1) {
    const weight = ((count - lag) / count) * stay ** lag + (lag / count) * stay ** (count - lag)
    if (weight > NEGLIGIBLE) variance += 2 * weight * covariance(lag)
  }
  return variance
}
