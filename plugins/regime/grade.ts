/**
 * How good the labels were, judged by what the market did in the hour after each. The same definitions grade the live
 * service and the bench.
 */
export interface Graded {
  /** Minutes between snapshots. */
  readonly stepMinutes: number
  /** 1 where VOLATILE. */
  readonly volatile: ArrayLike<number>
  /** Smoothed probability of VOLATILE. */
  readonly probability: ArrayLike<number>
  /** Volatility of the hour after the snapshot; NaN where unknown. */
  readonly forward: ArrayLike<number>
  /** The boundary published with the snapshot, in the same unit. */
  readonly boundary: ArrayLike<number>
}

export interface Grades {
  readonly snapshots: number
  readonly share_volatile: number
  readonly flips_per_day: number
  /** Mean volatility of the next hour in VOLATILE over that in STABLE. */
  readonly forward_vol_ratio: number
  /** Share of labels that are the same one hour later; of the VOLATILE ones. */
  readonly persistence_1h: number
  readonly volatile_persistence_1h: number
  /** Share of labels that the next hour bore out. */
  readonly accuracy: number
  readonly brier: number
  readonly ece: number
}

const BINS = 20

/**
 * Grades a run of snapshots, one every `stepMinutes`. Figures without a case are NaN.
 *
 * Brier: mean of (probability - outcome)², outcome 1 where the next hour was above the boundary. ECE: |share right -
 * mean confidence| over 20 equal bins of confidence, weighted by their size; confidence is the probability of the label.
 */
export function grade(graded: Graded): Grades {
  const { volatile, probability, forward, boundary, stepMinutes } = graded
  const n = volatile.length
  const hour = Math.round(60 / stepMinutes)
  const sum = [0, 0]
  const known = [0, 0]
  const stayed = [0, 0]
  const followed = [0, 0]
  const binned = { count: new Float64Array(BINS), right: new Float64Array(BINS), stated: new Float64Array(BINS) }
  let [flips, labelled, right, squares, judged] = [0, 0, 0, 0, 0]
  for (let i = 0; i < n; i += 1) {
    const label = volatile[i]!
    labelled += label
    if (i > 0 && label !== volatile[i - 1]) flips += 1
    if (i + hour < n) {
      followed[label]! += 1
      if (volatile[i + hour] === label) stayed[label]! += 1
    }
    const outcome = forward[i]!
    if (Number.isNaN(outcome)) continue
    sum[label]! += outcome
    known[label]! += 1
    const above = outcome > boundary[i]! ? 1 : 0
    const confidence = label === 1 ? probability[i]! : 1 - probability[i]!
    const bin = Math.min(BINS - 1, Math.floor(confidence * BINS))
    binned.count[bin]! += 1
    binned.stated[bin]! += confidence
    if (above === label) {
      binned.right[bin]! += 1
      right += 1
    }
    squares += (probability[i]! - above) ** 2
    judged += 1
  }
  let miss = 0
  for (let bin = 0; bin < BINS; bin += 1) miss += Math.abs(binned.right[bin]! - binned.stated[bin]!)
  return {
    snapshots: n,
    share_volatile: labelled / n,
    flips_per_day: flips / ((n * stepMinutes) / 1440),
    forward_vol_ratio: sum[1]! / known[1]! / (sum[0]! / known[0]!),
    persistence_1h: (stayed[0]! + stayed[1]!) / (followed[0]! + followed[1]!),
    volatile_persistence_1h: stayed[1]! / followed[1]!,
    accuracy: right / judged,
    brier: squares / judged,
    ece: miss / judged,
  }
}
