import type { Leg } from './trade-ledger.ts'

/**
 * The defects of rows, each with its family: `structure` excludes the row from the statistics, `fill` concerns one
 * execution, and `trade` a round trip.
 */
export const CODES = {
  missing_value: 'structure',
  unreadable_number: 'structure',
  unknown_side: 'structure',
  unparseable_time: 'structure',
  nonpositive_price: 'structure',
  nonpositive_qty: 'structure',
  exit_before_entry: 'structure',
  future_time: 'structure',
  duplicate_trade: 'structure',
  outside_range: 'fill',
  closed_market: 'fill',
  before_listing: 'fill',
  after_delisting: 'fill',
  exceeds_volume: 'fill',
  split_not_adjusted: 'trade',
  pnl_mismatch: 'trade',
  off_tick: 'fill',
} as const
export type Code = keyof typeof CODES

export interface Finding {
  /** 0-based data row. */
  readonly row: number
  readonly code: Code
  readonly severity: 'error' | 'warning'
  readonly leg?: Leg
  /** The column with the defect, as the file names it. */
  readonly field?: string
  /** The cell with the defect, as the file writes it. */
  readonly text?: string
  readonly symbol?: string
  readonly price?: number
  readonly [figure: string]: unknown
}

const MAX_FINDINGS = 1000

export interface Findings {
  add(finding: Finding): void
  /** At most 1,000, by row. */
  list(): readonly Finding[]
  readonly truncated: boolean
  /** Number of findings per code, including those beyond the first 1,000. */
  counts(): Readonly<Record<string, number>>
}

/** Collects findings. Lists the first 1,000 and counts all of them. */
export function createFindings(): Findings {
  const kept: Finding[] = []
  const counts = new Map<string, number>()
  return {
    add(finding) {
      if (kept.length < MAX_FINDINGS) kept.push(finding)
      counts.set(finding.code, (counts.get(finding.code) ?? 0) + 1)
    },
    list: () => kept.toSorted((one, other) => one.row - other.row),
    get truncated() {
      return [...counts.values()].reduce((sum, count) => sum + count, 0) > kept.length
    },
    counts: () => Object.fromEntries([...counts].sort(([one], [other]) => (one < other ? -1 : 1))),
  }
}
