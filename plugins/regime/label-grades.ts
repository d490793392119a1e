import { LIVE, type Snapshot, type Snapshots } from './snapshots.ts'

/**
 * Grades labels by what the market did in the hour after each. The live service and the benchmark use the same
 * definitions.
 */
export interface Graded {
  /** Minutes between snapshots. */
  readonly stepMinutes: number
  /** 1 for VOLATILE, 0 for STABLE. */
  readonly volatile: ArrayLike<number>
  /** Smoothed probability of VOLATILE. */
  readonly probability: ArrayLike<number>
  /** Volatility of the hour after the snapshot; NaN if unknown. */
  readonly forward: ArrayLike<number>
  /** The boundary published with the snapshot, in the same unit. */
  readonly boundary: ArrayLike<number>
  /** Which snapshots are graded; without it, all. The others still tell what came after. */
  readonly counts?: ((index: number) => boolean) | undefined
}

export interface Grades {
  readonly snapshots: number
  readonly share_volatile: number
  readonly flips_per_day: number
  /** Mean volatility of the next hour in VOLATILE over that in STABLE. */
  readonly forward_vol_ratio: number
  /** Share of labels that are the same one hour later: of all labels, and of the VOLATILE ones. */
  readonly persistence_1h: number
  readonly volatile_persistence_1h: number
  /** Share of labels that the next hour confirmed. */
  readonly accuracy: number
  readonly brier: number
  readonly ece: number
}

const BINS = 20

/**
 * Grades a run of snapshots, one every `stepMinutes`. A figure without any case is NaN.
 *
 * Brier: mean of (probability - outcome)², where the outcome is 1 if the next hour was above the boundary. ECE: |share right -
 * mean confidence| over 20 equal bins of confidence, weighted by their size; confidence is the probability of the label.
 */
export function gradeLabels(graded: Graded): Grades {
  const { volatile, probability, forward, boundary, stepMinutes, counts } = graded
  const n = volatile.length
  let snapshots = 0
  const hour = Math.round(60 / stepMinutes)
  const sum = [0, 0]
  const known = [0, 0]
  const stayed = [0, 0]
  const followed = [0, 0]
  const binned = { count: new Float64Array(BINS), right: new Float64Array(BINS), stated: new Float64Array(BINS) }
  let [flips, labelled, right, squares, judged] = [0, 0, 0, 0, 0]
  for (let i = 0; i < n; i += 1) {
    if (counts && !counts(i)) continue
    const label = volatile[i]!
    snapshots += 1
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
    snapshots,
    share_volatile: labelled / snapshots,
    flips_per_day: flips / ((snapshots * stepMinutes) / 1440),
    forward_vol_ratio: sum[1]! / known[1]! / (sum[0]! / known[0]!),
    persistence_1h: (stayed[0]! + stayed[1]!) / (followed[0]! + followed[1]!),
    volatile_persistence_1h: stayed[1]! / followed[1]!,
    accuracy: right / judged,
    brier: squares / judged,
    ece: miss / judged,
  }
}

const DAY = 86_400
const MINUTES_A_DAY = 1440
const PAGE = 5_000
const NEEDED = ['as_of', 'volatile', 'confidence', 'boundary_vol', 'realized_vol_1h', 'origin'] as const
type Needed = Pick<Snapshot, (typeof NEEDED)[number]>

/** Grades of all snapshots, of those that were computed live, and of the others. */
export interface GradesByOrigin {
  readonly all: Grades
  readonly live: Grades
  readonly others: Grades
}

/** Grades the stored snapshots of the last `days`. Each call reads only the snapshots since the call before. */
export function createGrader(snapshots: Snapshots, days: number): (now: number) => Promise<GradesByOrigin> {
  let kept = createSample()
  let last: number | null = null
  return async (now) => {
    for (;;) {
      const from = last === null ? now - days * DAY : last + 1
      const page = await snapshots.between(NEEDED, { from, to: now + 1, asOf: now, limit: PAGE })
      for (const row of page) addTo(kept, row)
      last = page.at(-1)?.as_of ?? last
      if (page.length < PAGE) break
    }
    const surplus = kept.volatile.length - days * MINUTES_A_DAY
    if (surplus > MINUTES_A_DAY) kept = trimmed(kept, surplus)
    return gradeSample(kept)
  }
}

/** The columns that grades need, with one entry per snapshot. */
interface Sample {
  readonly volatile: number[]
  readonly probability: number[]
  readonly boundary: number[]
  readonly realized: number[]
  /** 1 for a snapshot that was computed live. */
  readonly live: number[]
}

function createSample(): Sample {
  return { volatile: [], probability: [], boundary: [], realized: [], live: [] }
}

function addTo(sample: Sample, row: Needed): void {
  sample.volatile.push(row.volatile)
  sample.probability.push(row.volatile === 1 ? row.confidence : 1 - row.confidence)
  sample.boundary.push(row.boundary_vol)
  sample.realized.push(row.realized_vol_1h ?? NaN)
  sample.live.push(row.origin === LIVE ? 1 : 0)
}

function trimmed({ volatile, probability, boundary, realized, live }: Sample, surplus: number): Sample {
  return {
    volatile: volatile.slice(surplus),
    probability: probability.slice(surplus),
    boundary: boundary.slice(surplus),
    realized: realized.slice(surplus),
    live: live.slice(surplus),
  }
}

/** The outcome of a snapshot is the realized volatility of the snapshot one hour later. */
function gradeSample({ volatile, probability, boundary, realized, live }: Sample): GradesByOrigin {
  const forward = Float64Array.from(volatile, (_, i) => realized[i + 60] ?? NaN)
  const graded = { stepMinutes: 1, volatile, probability, boundary, forward }
  const all = gradeLabels(graded)
  return {
    all,
    live: gradeLabels({ ...graded, counts: (i) => live[i] === 1 }),
    others: gradeLabels({ ...graded, counts: (i) => live[i] !== 1 }),
  }
}

export interface Curves {
  /** Mean stated confidence, share of correct labels, share of all snapshots; one row per non-empty bin. */
  readonly calibration: readonly (readonly [stated: number, right: number, share: number])[]
  /** Hours later, share of labels that are the same: of all, and of the VOLATILE ones. */
  readonly persistence: readonly (readonly [hours: number, all: number, volatile: number])[]
}

const CALIBRATION_BINS = 10
const HOURS = [1, 2, 3, 4, 6, 8, 12, 18, 24] as const

/**
 * Calibration and persistence of graded labels. Confidence lies between 0.5, minus the width of the hysteresis, and 1.
 * It is counted in ten bins of 0.05 from 0.5 on; the first bin also takes lower values. A label is correct if the next
 * hour was on its side of the boundary.
 */
export function curvesOf(graded: Graded): Curves {
  return { calibration: calibrationOf(graded), persistence: persistenceOf(graded) }
}

function calibrationOf({ volatile, probability, forward, boundary }: Graded): Curves['calibration'] {
  const [count, right, stated] = [
    new Float64Array(CALIBRATION_BINS),
    new Float64Array(CALIBRATION_BINS),
    new Float64Array(CALIBRATION_BINS),
  ]
  let judged = 0
  for (let i = 0; i < volatile.length; i += 1) {
    const outcome = forward[i]!
    if (Number.isNaN(outcome)) continue
    const label = volatile[i]!
    const confidence = label === 1 ? probability[i]! : 1 - probability[i]!
    const bin = Math.max(0, Math.min(CALIBRATION_BINS - 1, Math.floor((confidence - 0.5) * 2 * CALIBRATION_BINS)))
    count[bin]! += 1
    stated[bin]! += confidence
    if ((outcome > boundary[i]! ? 1 : 0) === label) right[bin]! += 1
    judged += 1
  }
  return Array.from(count).flatMap((of, bin) =>
    of === 0 ? [] : [[stated[bin]! / of, right[bin]! / of, of / judged] as const],
  )
}

function persistenceOf({ volatile, stepMinutes }: Graded): Curves['persistence'] {
  return HOURS.flatMap((hours) => {
    const steps = Math.round((hours * 60) / stepMinutes)
    const [followed, stayed] = [
      [0, 0],
      [0, 0],
    ]
    for (let i = 0; i + steps < volatile.length; i += 1) {
      const label = volatile[i]!
      followed[label]! += 1
      if (volatile[i + steps] === label) stayed[label]! += 1
    }
    if (followed[1] === 0 || followed[0] === 0) return []
    return [[hours, (stayed[0]! + stayed[1]!) / (followed[0]! + followed[1]!), stayed[1]! / followed[1]!] as const]
  })
}
