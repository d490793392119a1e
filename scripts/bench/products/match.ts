import type { Defect } from './defects.ts'

export interface Found {
  readonly code: string
  readonly family: string
  readonly severity: string
  readonly index: number
  readonly observed: number | string | null
}

export interface FoundSplit {
  readonly index: number
  readonly factor: number
}

/** Hits, misses and false alarms, by family; for bad prints by tier as well, as "bad_print hard". */
export type Tally = Map<string, { hits: number; wanted: number; alarms: number; false: number }>

/**
 * Counts a report against the truth. A defect is found by a finding of its family on its row; bad prints and timestamps
 * may be one row late, stale runs must overlap by half, splits lie within a bar and 2% of the factor. A finding that meets
 * no defect of its family is false, unless a defect of another family explains it or it is an info.
 */
export function tally(
  truth: readonly Defect[],
  found: readonly Found[],
  splits: readonly FoundSplit[],
  into: Tally,
): void {
  const splitsFound = splits.map(({ index, factor }) => ({
    code: 'unadjusted_split', family: 'split', severity: 'error', index, observed: factor,
  })) // prettier-ignore
  const others = found.filter(({ family, severity }) => family !== 'split' && severity !== 'info')
  const findings: Found[] = [...others, ...splitsFound]
  for (const defect of truth) {
    const isHit = findings.some((finding) => meets(defect, finding))
    for (const key of keysOf(defect)) {
      const entry = entryOf(into, key)
      entry.wanted += 1
      if (isHit) entry.hits += 1
    }
  }
  for (const finding of findings) {
    const entry = entryOf(into, finding.family)
    entry.alarms += 1
    if (!truth.some((defect) => meets(defect, finding))) entry.false += 1
  }
}

function keysOf({ family, tier }: Defect): string[] {
  return tier ? [family, `${family} ${tier}`] : [family]
}

function entryOf(into: Tally, key: string): { hits: number; wanted: number; alarms: number; false: number } {
  const entry = into.get(key) ?? { hits: 0, wanted: 0, alarms: 0, false: 0 }
  into.set(key, entry)
  return entry
}

function meets(defect: Defect, finding: Found): boolean {
  if (defect.family !== finding.family) return false
  const late = finding.index - defect.row
  if (defect.family === 'bad_print' || defect.family === 'timestamp') return late === 0 || late === 1
  if (defect.family === 'split')
    return Math.abs(late) <= 1 && Math.abs(Number(finding.observed) / (defect.factor ?? 1) - 1) < 0.02
  if (defect.family !== 'stale') return late === 0
  const [length, seen] = [defect.length ?? 0, Number(finding.observed)]
  const overlap = Math.min(defect.row + length, finding.index + seen) - Math.max(defect.row, finding.index)
  return overlap >= length / 2
}
