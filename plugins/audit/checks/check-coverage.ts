const CHECKS = ['outside_range', 'session', 'listing', 'volume', 'tick', 'split', 'pnl', 'lookahead'] as const
type CheckName = (typeof CHECKS)[number]

/** How many items a check covered, and why it skipped the others. */
export interface Check {
  readonly check: CheckName
  readonly status: 'checked' | 'partly_checked' | 'not_checked'
  readonly checked: number
  readonly not_checked: number
  readonly reasons: readonly string[]
}

export interface CheckCoverage {
  /** Counts items that a check covered; one by default. */
  addChecked(check: CheckName, count?: number): void
  /** Counts items that a check skipped; one by default. */
  addSkipped(check: CheckName, reason: string, count?: number): void
  /** Every check in a fixed order, with at most five different reasons. */
  list(): Check[]
}

const MAX_REASONS = 5

/** Counts what each check covered. A check that covered nothing is `not_checked`, even if there was nothing to skip. */
export function createCheckCoverage(): CheckCoverage {
  const rows = new Map(CHECKS.map((check) => [check, { checked: 0, missed: 0, reasons: new Set<string>(), last: '' }]))
  return {
    addChecked(check, count = 1) {
      const row = rows.get(check)
      if (row) row.checked += count
    },
    addSkipped(check, reason, count = 1) {
      const row = rows.get(check)
      if (!row) return
      row.missed += count
      // Most fills in a row have the same reason.
      if (row.last !== reason) row.reasons.add((row.last = reason))
    },
    list: () =>
      [...rows].map(([check, { checked, missed, reasons }]) => ({
        check,
        status: checked === 0 ? 'not_checked' : missed === 0 ? 'checked' : 'partly_checked',
        checked,
        not_checked: missed,
        reasons: [...reasons].slice(0, MAX_REASONS),
      })),
  }
}
