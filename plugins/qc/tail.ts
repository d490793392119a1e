/** The upper tail of a score over a whole file, taken as exponential between its 90% and 98% quantiles. */
export interface Tail {
  /** How many bars of a clean file of this length would score at least this much. */
  expected(score: number): number
  /** The score that one bar of a clean file is expected to reach. */
  readonly one: number
}

/**
 * Fits the tail on the file itself. The quantiles lie below the reach of defects rarer than 2%, so the fit is of the
 * market, not of its misprints.
 */
export function fitTail(scores: Float64Array): Tail {
  const sorted = scores.slice().sort()
  const at = (p: number): number => sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))] ?? 0
  const [low, high] = [Math.max(0, at(0.9)), Math.max(0, at(0.98))]
  const slope = Math.max((high - low) / Math.log(5), 1e-9)
  const above = Math.max(1, 0.02 * scores.length)
  return {
    expected: (score) => above * Math.exp((high - score) / slope),
    one: high + slope * Math.log(above),
  }
}
