/** The upper tail of a score over a whole file, taken as exponential between its 90% and 98% quantiles. */
export interface Tail {
  /** How many bars of a clean file of this length would score at least this much. */
  expected(score: number): number
  /** The score that one bar of a clean file is expected to reach. */
  readonly one: number
}

/** Fewer bars than this do not show their own tail. */
const FEWEST = 500
/** 90% and 98% quantiles of the scores of clean files, for files that cannot show their own. */
const TYPICAL = [0.28, 0.6] as const

/**
 * Fits the tail on the file itself. The quantiles lie below the reach of defects rarer than 2%, so the fit is of the
 * market, not of its misprints.
 */
export function fitTail(scores: Float64Array): Tail {
  const sorted = scores.slice().sort()
  const at = (p: number): number => Math.max(0, sorted[Math.floor(p * sorted.length)] ?? 0)
  const [low, high] = scores.length < FEWEST ? TYPICAL : [at(0.9), at(0.98)]
  const slope = Math.max((high - low) / Math.log(5), 1e-9)
  const above = Math.max(1, 0.02 * scores.length)
  return {
    expected: (score) => above * Math.exp((high - score) / slope),
    one: high + slope * Math.log(above),
  }
}
