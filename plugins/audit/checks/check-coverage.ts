export const CHECKS = ['outside_range', 'session', 'listing', 'volume', 'tick', 'split', 'pnl', 'lookahead'] as const
export type CheckName = (typeof CHECKS)[number]

/** How many items a check covered, and why it skipped the others. */
export interface Check {
  readonly check: CheckName
  readonly status: 'checked' | 'partly_checked' | 'not_checked'
  readonly checked: number
  readonly not_checked: number
  readonly reasons: readonly string[]
}

export interface CheckCoverage {
  addChecked(check: CheckName, count?: number): void
  addSkipped(check: CheckName, reason: string, count?: number): void
  list(): Check[]
}

const MAX_REASONS = 5

export function createCheckCoverage(): CheckCoverage {
  const rows = new Map(CHECKS.map((check) => [check, { checked: 0, missed: 0, reasons: new Set<string>() }]))
  return {
    addChecked(check, count = 1) {
      const row = rows.get(check)
      if (row) row.checked += count
    },
    addSkipped(check, reason, count = 1) {
      const row = rows.get(check)
      row?.reasons.add(reason)
      if (row) row.missed += count
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
