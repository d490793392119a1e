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
 * Counts and sums from which grades are computed. Those of two runs of snapshots can be added, so the grades of ninety days
 * are those of ninety sums.
 *
 * Brier: mean of (probability - outcome)², where the outcome is 1 if the next hour was above the boundary. ECE: |share right -
 * mean confidence| over 20 equal bins of confidence, weighted by their size; confidence is the probability of the label.
 */
class GradeSums {
  #labels = 0
  #flips = 0
  #right = 0
  #squares = 0
  /** Index 0 is STABLE, 1 is VOLATILE. */
  readonly #of = [0, 0]
  readonly #stayed = [0, 0]
  readonly #followed = [0, 0]
  readonly #known = [0, 0]
  readonly #forward = [0, 0]
  /** By bin of confidence: how many labels, how many were right, and the sum of what they stated. */
  readonly #count = new Float64Array(BINS)
  readonly #confirmed = new Float64Array(BINS)
  readonly #stated = new Float64Array(BINS)

  /** A snapshot, and whether its label differs from the one before. */
  addLabel(label: number, isFlip: boolean): void {
    this.#labels += 1
    this.#of[label]! += 1
    if (isFlip) this.#flips += 1
  }

  /** The label one hour after a snapshot. */
  addLater(label: number, later: number): void {
    this.#followed[label]! += 1
    if (later === label) this.#stayed[label]! += 1
  }

  /** The volatility of the hour after a snapshot, in the unit of its boundary; NaN if unknown. */
  addOutcome(label: number, probability: number, boundary: number, forward: number): void {
    if (Number.isNaN(forward)) return
    this.#forward[label]! += forward
    this.#known[label]! += 1
    const above = forward > boundary ? 1 : 0
    const confidence = label === 1 ? probability : 1 - probability
    const bin = Math.min(BINS - 1, Math.floor(confidence * BINS))
    this.#count[bin]! += 1
    this.#stated[bin]! += confidence
    if (above === label) {
      this.#confirmed[bin]! += 1
      this.#right += 1
    }
    this.#squares += (probability - above) ** 2
  }

  /** The sums of all of them together. */
  static of(all: Iterable<GradeSums>): GradeSums {
    const total = new GradeSums()
    const add = (to: number[] | Float64Array, from: ArrayLike<number>): void => {
      for (let i = 0; i < to.length; i += 1) to[i]! += from[i]!
    }
    for (const one of all) {
      total.#labels += one.#labels
      total.#flips += one.#flips
      total.#right += one.#right
      total.#squares += one.#squares
      add(total.#of, one.#of)
      add(total.#stayed, one.#stayed)
      add(total.#followed, one.#followed)
      add(total.#known, one.#known)
      add(total.#forward, one.#forward)
      add(total.#count, one.#count)
      add(total.#confirmed, one.#confirmed)
      add(total.#stated, one.#stated)
    }
    return total
  }

  /** The grades, of snapshots `stepMinutes` apart. A figure without any case is NaN. */
  grades(stepMinutes: number): Grades {
    const [stableKnown, volatileKnown] = this.#known as [number, number]
    const judged = stableKnown + volatileKnown
    let miss = 0
    for (let bin = 0; bin < BINS; bin += 1) miss += Math.abs(this.#confirmed[bin]! - this.#stated[bin]!)
    return {
      snapshots: this.#labels,
      share_volatile: this.#of[1]! / this.#labels,
      flips_per_day: this.#flips / ((this.#labels * stepMinutes) / 1440),
      forward_vol_ratio: this.#forward[1]! / volatileKnown / (this.#forward[0]! / stableKnown),
      persistence_1h: (this.#stayed[0]! + this.#stayed[1]!) / (this.#followed[0]! + this.#followed[1]!),
      volatile_persistence_1h: this.#stayed[1]! / this.#followed[1]!,
      accuracy: this.#right / judged,
      brier: this.#squares / judged,
      ece: miss / judged,
    }
  }
}

/** Grades a run of snapshots, one every `stepMinutes`. A figure without any case is NaN. */
export function gradeLabels({ volatile, probability, forward, boundary, stepMinutes }: Graded): Grades {
  const sums = new GradeSums()
  const hour = Math.round(60 / stepMinutes)
  for (let i = 0; i < volatile.length; i += 1) {
    const label = volatile[i]!
    sums.addLabel(label, i > 0 && label !== volatile[i - 1])
    if (i + hour < volatile.length) sums.addLater(label, volatile[i + hour]!)
    sums.addOutcome(label, probability[i]!, boundary[i]!, forward[i]!)
  }
  return sums.grades(stepMinutes)
}

const HOUR = 3_600
const DAY = 86_400
/** Rows of one query: a few milliseconds of the event loop. */
const PAGE = 1_000
const NEEDED = ['as_of', 'volatile', 'confidence', 'boundary_vol', 'realized_vol_1h', 'origin'] as const
type Needed = Pick<Snapshot, (typeof NEEDED)[number]>

/** The grades of snapshots, the times of the first and the last of them, and what a rule without a model gets on them. */
export interface WindowGrades extends Grades {
  /** Epoch seconds; null without a snapshot. */
  readonly start: number | null
  readonly end: number | null
  /** VOLATILE while the volatility of the last hour is above the boundary, as certain as can be. */
  readonly lastHour: Grades
}

/** Grades of all snapshots, of those that were computed live, and of the others. */
export interface GradesByOrigin {
  readonly all: WindowGrades
  readonly live: WindowGrades
  readonly others: WindowGrades
}

/** The sums of snapshots of one day. */
class DaySums {
  readonly model = new GradeSums()
  readonly lastHour = new GradeSums()
  start = Infinity
  end = -Infinity
}

/** Those of the snapshots that were computed live, and of the others. */
interface Day {
  readonly live: DaySums
  readonly others: DaySums
}

/** The label of the rule without a model; null if the volatility of the last hour is unknown. */
const lastHourLabel = ({ realized_vol_1h: vol, boundary_vol: boundary }: Needed): 0 | 1 | null =>
  vol === null ? null : vol > boundary ? 1 : 0

function windowGrades(days: readonly DaySums[], stepMinutes: number): WindowGrades {
  const [start, end] = [Math.min(...days.map((day) => day.start)), Math.max(...days.map((day) => day.end))]
  return {
    ...GradeSums.of(days.map(({ model }) => model)).grades(stepMinutes),
    lastHour: GradeSums.of(days.map(({ lastHour }) => lastHour)).grades(stepMinutes),
    start: Number.isFinite(start) ? start : null,
    end: Number.isFinite(end) ? end : null,
  }
}

/**
 * Grades the stored snapshots of one market, of the last `days` and of today. The outcome of a snapshot is the
 * realized volatility of the one an hour later. It keeps sums of each day, and the snapshots of the last hour.
 */
export class Grader {
  readonly #snapshots: Snapshots
  readonly #days: number
  /** By days since the epoch, oldest first. */
  readonly #sums = new Map<number, Day>()
  /** Snapshots whose hour is not over, by as_of, oldest first. */
  readonly #open = new Map<number, Needed>()
  #last: Needed | null = null
  #lastHourLabel: 0 | 1 | null = null
  /** The shortest distance of two snapshots. */
  #stepMinutes = Infinity
  #grading: Promise<unknown> = Promise.resolve()

  constructor(snapshots: Snapshots, days: number) {
    this.#snapshots = snapshots
    this.#days = days
  }

  /** Grades what is known at `now`, epoch seconds. Each call reads only the snapshots since the call before, after it. */
  grade(now: number): Promise<GradesByOrigin> {
    const grading = this.#grading.then(() => this.#grade(now))
    this.#grading = grading.catch(() => {})
    return grading
  }

  async #grade(now: number): Promise<GradesByOrigin> {
    const first = Math.floor(now / DAY) - this.#days
    for (;;) {
      const from = this.#last === null ? first * DAY : this.#last.as_of + 1
      const page = await this.#snapshots.between(NEEDED, { from, to: now + 1, asOf: now, limit: PAGE })
      for (const row of page) this.#add(row)
      if (page.length < PAGE) break
    }
    for (const day of this.#sums.keys()) if (day < first) this.#sums.delete(day)
    const [live, others] = [
      [...this.#sums.values()].map((day) => day.live),
      [...this.#sums.values()].map((day) => day.others),
    ]
    const gradesOf = (days: readonly DaySums[]): WindowGrades => windowGrades(days, this.#stepMinutes)
    return { all: gradesOf([...live, ...others]), live: gradesOf(live), others: gradesOf(others) }
  }

  #add(row: Needed): void {
    this.#addLabels(row)
    if (this.#last !== null) this.#stepMinutes = Math.min(this.#stepMinutes, (row.as_of - this.#last.as_of) / 60)
    this.#last = row
    this.#open.set(row.as_of, row)
    for (const [asOf, earlier] of this.#open) {
      if (asOf > row.as_of - HOUR) break
      this.#open.delete(asOf)
      // Nothing is known of what followed if the minute an hour later is missing.
      if (asOf < row.as_of - HOUR) continue
      this.#addOutcomes(earlier, row)
    }
  }

  #addLabels(row: Needed): void {
    const sums = this.#sumsOf(row)
    sums.start = Math.min(sums.start, row.as_of)
    sums.end = Math.max(sums.end, row.as_of)
    sums.model.addLabel(row.volatile, this.#last !== null && this.#last.volatile !== row.volatile)
    const label = lastHourLabel(row)
    if (label === null) return
    sums.lastHour.addLabel(label, this.#lastHourLabel !== null && this.#lastHourLabel !== label)
    this.#lastHourLabel = label
  }

  /** What followed a snapshot, from the one an hour later. */
  #addOutcomes(earlier: Needed, row: Needed): void {
    const { model, lastHour } = this.#sumsOf(earlier)
    const outcome = [earlier.boundary_vol, row.realized_vol_1h ?? NaN] as const
    model.addLater(earlier.volatile, row.volatile)
    model.addOutcome(earlier.volatile, earlier.volatile === 1 ? earlier.confidence : 1 - earlier.confidence, ...outcome)
    const [label, later] = [lastHourLabel(earlier), lastHourLabel(row)]
    if (label === null) return
    if (later !== null) lastHour.addLater(label, later)
    lastHour.addOutcome(label, label, ...outcome)
  }

  #sumsOf({ as_of: asOf, origin }: Needed): DaySums {
    const number = Math.floor(asOf / DAY)
    let day = this.#sums.get(number)
    if (!day) {
      day = { live: new DaySums(), others: new DaySums() }
      this.#sums.set(number, day)
    }
    return origin === LIVE ? day.live : day.others
  }
}

/** Mean stated confidence, share of correct labels, share of all snapshots; one row per non-empty bin. */
export type Calibration = readonly (readonly [stated: number, right: number, share: number])[]

const CALIBRATION_BINS = 10

/**
 * Calibration of graded labels. Confidence lies between 0.5, minus the width of the hysteresis, and 1. It is counted in ten
 * bins of 0.05 from 0.5 on; the first bin also takes lower values. A label is correct if the next hour was on its side of
 * the boundary.
 */
export function calibrationOf({ volatile, probability, forward, boundary }: Graded): Calibration {
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
