export interface BenchmarkFit {
  /** Mean return that the benchmark does not explain, per observation. */
  readonly alpha: number
  /** Return for a return of 1 of the benchmark; 0 if the benchmark does not vary. */
  readonly beta: number
  /** Alpha divided by its standard error; 0 if nothing is left beside the benchmark. */
  readonly alphaT: number
}

/** What is left of the returns, as a share of them, below which the benchmark explains everything. */
const NOTHING_LEFT = 1e-12

/**
 * Regresses returns on those of a benchmark, returns = alpha + beta · benchmark + residual, by least squares. The standard
 * error of alpha is that of Newey and West with weights 1 - lag/(lags + 1), times √(n/(n - 2)), so that neither changing
 * positions nor correlated days make alpha look surer than it is. The default number of lags is 4(n/100)^(2/9), rounded
 * down. Null for fewer than three observations, and for numbers so large that their squares are not finite.
 *
 * Source: Newey and West, "A simple, positive semi-definite, heteroskedasticity and autocorrelation consistent covariance
 * matrix", Econometrica 55 (1987) 703-708; the lags as in their Review of Economic Studies 61 (1994).
 *
 * @example returns 0.012, -0.004, 0.021, 0.003, -0.009 on 0.01, -0.005, 0.015, 0, -0.01 with one lag:
 * // alpha 0.002279…, beta 1.160465…, alphaT 3.7337…
 */
export function regressOnBenchmark(
  returns: ArrayLike<number>,
  benchmark: ArrayLike<number>,
  lags = Math.floor(4 * (returns.length / 100) ** (2 / 9)),
): BenchmarkFit | null {
  const count = returns.length
  if (count < 3) return null
  let [meanY, meanX] = [0, 0]
  for (let i = 0; i < count; i += 1) {
    meanY += returns[i]! / count
    meanX += benchmark[i]! / count
  }
  let [xx, xy, yy] = [0, 0, 0]
  for (let i = 0; i < count; i += 1) {
    const [x, y] = [benchmark[i]! - meanX, returns[i]! - meanY]
    xx += x * x
    xy += x * y
    yy += y * y
  }
  const beta = xx > 0 ? xy / xx : 0
  const alpha = meanY - beta * meanX
  // The influence of each observation on alpha. Its long-run variance is that of alpha.
  const influence = new Float64Array(count)
  let rest = 0
  for (let i = 0; i < count; i += 1) {
    const x = benchmark[i]! - meanX
    const residual = returns[i]! - meanY - beta * x
    rest += residual * residual
    influence[i] = residual * (1 / count - (xx > 0 ? (meanX * x) / xx : 0))
  }
  if (!(rest > NOTHING_LEFT * yy)) return { alpha, beta, alphaT: 0 }
  let variance = 0
  for (let lag = 0; lag <= Math.min(lags, count - 1); lag += 1) {
    let sum = 0
    for (let i = lag; i < count; i += 1) sum += influence[i]! * influence[i - lag]!
    variance += sum * (lag === 0 ? 1 : 2 * (1 - lag / (lags + 1)))
  }
  const alphaT = alpha / Math.sqrt((variance * count) / (count - 2))
  return Number.isFinite(alphaT) ? { alpha, beta, alphaT } : null
}
