import { grade, type Grades } from './grade.ts'
import type { Snapshot, Snapshots } from './snapshots.ts'

const DAY = 86_400
const MINUTES_A_DAY = 1440
const PAGE = 5_000
const NEEDED = ['as_of', 'volatile', 'confidence', 'boundary_vol', 'realized_vol_1h'] as const
type Needed = Pick<Snapshot, (typeof NEEDED)[number]>

/** Grades of the last `days`, from the snapshots kept; each call reads only what is new since the one before. */
export function createGrader(snapshots: Snapshots, days: number): (now: number) => Promise<Grades> {
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
    return gradeSample(kept, 1)
  }
}

/** The columns of snapshots that grades need, one entry a snapshot. */
interface Sample {
  readonly volatile: number[]
  readonly probability: number[]
  readonly boundary: number[]
  readonly realized: number[]
}

function createSample(): Sample {
  return { volatile: [], probability: [], boundary: [], realized: [] }
}

function addTo(sample: Sample, row: Needed): void {
  sample.volatile.push(row.volatile)
  sample.probability.push(row.volatile === 1 ? row.confidence : 1 - row.confidence)
  sample.boundary.push(row.boundary_vol)
  sample.realized.push(row.realized_vol_1h ?? NaN)
}

function trimmed({ volatile, probability, boundary, realized }: Sample, surplus: number): Sample {
  return {
    volatile: volatile.slice(surplus),
    probability: probability.slice(surplus),
    boundary: boundary.slice(surplus),
    realized: realized.slice(surplus),
  }
}

function gradeSample({ volatile, probability, boundary, realized }: Sample, stepMinutes: number): Grades {
  const hour = 60 / stepMinutes
  const forward = Float64Array.from(volatile, (_, i) => realized[i + hour] ?? NaN)
  return grade({ stepMinutes, volatile, probability, boundary, forward })
}

/**
 * Grades snapshots that follow each other without a missing one, `stepMinutes` apart. What came in the hour after a
 * snapshot is the realized volatility of the snapshot an hour later.
 */
export function gradeSnapshots(rows: readonly Needed[], stepMinutes: number): Grades {
  const sample = createSample()
  for (const row of rows) addTo(sample, row)
  return gradeSample(sample, stepMinutes)
}
