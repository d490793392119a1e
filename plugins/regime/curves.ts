/** The record as curves, for the methodology page: how often stated confidence was right, how long a label stays. */
import type { Graded } from './grade.ts'

export interface Curves {
  /** Mean confidence stated, share of labels right, share of all snapshots; one row for each bin that has any. */
  readonly calibration: readonly (readonly [stated: number, right: number, share: number])[]
  /** Hours later, share of labels the same, and of the VOLATILE ones. */
  readonly persistence: readonly (readonly [hours: number, all: number, volatile: number])[]
}

const BINS = 10
const HOURS = [1, 2, 3, 4, 6, 8, 12, 18, 24] as const

/**
 * Confidence lies between 0.5, less the width of the hysteresis, and 1: ten bins of 0.05 from 0.5 on, the first takes
 * what is below too. A label is right where the next hour was on its side of the boundary.
 */
export function curvesOf(graded: Graded): Curves {
  return { calibration: calibrationOf(graded), persistence: persistenceOf(graded) }
}

function calibrationOf({ volatile, probability, forward, boundary }: Graded): Curves['calibration'] {
  const [count, right, stated] = [new Float64Array(BINS), new Float64Array(BINS), new Float64Array(BINS)]
  let judged = 0
  for (let i = 0; i < volatile.length; i += 1) {
    const outcome = forward[i]!
    if (Number.isNaN(outcome)) continue
    const label = volatile[i]!
    const confidence = label === 1 ? probability[i]! : 1 - probability[i]!
    const bin = Math.max(0, Math.min(BINS - 1, Math.floor((confidence - 0.5) * 2 * BINS)))
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
