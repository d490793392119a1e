import { deflatedSharpe } from './dsr.ts'
import type { SharpeSample } from './psr.ts'

/** About ten a decade, with 1, 2 and 5 of each among them. */
const STEPS = [1.3, 1.6, 2, 2.5, 3, 4, 5, 6.5, 8, 10]

/**
 * The deflated Sharpe ratio of one sample had it been the best of 1, 2, 3, … `most` trials: pairs of trials and
 * probability, for a logarithmic axis. `variance` as in deflatedSharpe.
 *
 * Source: Bailey and López de Prado, "The deflated Sharpe ratio", J. Portfolio Management 40 (2014).
 *
 * @example of their sample (see deflatedSharpe) the point at 100 trials is [100, 0.90039…]
 */
export function deflationCurve(sample: SharpeSample, variance: number, most: number): [trials: number, dsr: number][] {
  const counts = new Set([1])
  for (let decade = 1; decade < most; decade *= 10) for (const step of STEPS) counts.add(Math.round(decade * step))
  return [...counts]
    .filter((count) => count <= most)
    .map((count) => [count, deflatedSharpe(sample, count, variance).dsr])
}
