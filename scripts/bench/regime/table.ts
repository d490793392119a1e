import type { Measured } from '../regime.ts'

const COLUMNS = [
  ['ratio', 'forward_vol_ratio', 2],
  ['stay 1h', 'persistence_1h', 3],
  ['V stay', 'volatile_persistence_1h', 3],
  ['flips/day', 'flips_per_day', 2],
  ['share V', 'share_volatile', 2],
  ['accuracy', 'accuracy', 3],
  ['Brier', 'brier', 3],
  ['ECE', 'ece', 3],
  ['corr', 'correlation', 2],
  ['CV', 'daily_vol_cv', 2],
  ['CV sized', 'scaled_daily_vol_cv', 2],
] as const

/** A table for people: model and baseline of each recording, and what the trials said. */
export function tableOf(results: readonly Measured[]): string {
  const head = ['recording', ...COLUMNS.map(([title]) => title)]
  const rows = results.flatMap(({ recording, trained_on, figures, baseline }) => [
    [trained_on === null ? recording : `${recording} (fit on ${trained_on})`, ...cells(figures)],
    ['  last hour > boundary', ...cells(baseline)],
  ])
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i]!.length)))
  const line = (row: readonly string[]): string =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  ')
  const notes = results.map(
    ({ recording, first, last, figures, bad_print_minutes, prefix_identical, seconds }) =>
      `${recording}: ${figures.snapshots} snapshots graded, ${first} to ${last}; one bad print changes the label for ` +
      `${bad_print_minutes} min (median of 20); prefixes ${prefix_identical ? 'identical' : 'DIFFER'}; ${seconds} s`,
  )
  return `${[line(head), ...rows.map(line), '', ...notes].join('\n')}\n`
}

function cells(figures: Measured['figures']): string[] {
  return COLUMNS.map(([, name, digits]) => figures[name]?.toFixed(digits) ?? '-')
}
