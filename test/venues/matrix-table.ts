/** The table of failures and products, as text. */
import { type Cell, verdictOf } from './failure-matrix.ts'

/** What the buyer got at the end of the failure, and how long the recovery took. */
export function cellText(cell: Cell): string {
  const verdict = verdictOf(cell)
  if (verdict === 'needs a restart') return `RESTART (${cell.late.verdict})`
  if (!['fresh', 'refused', 'marked'].includes(verdict)) return verdict.toUpperCase()
  const got =
    verdict === 'refused' ? (cell.late.verdict === 'refused' ? cell.late : cell.early).code.slice(0, 3) : verdict
  return `${got} ${durationOf(cell.recovery!)}`
}

function durationOf(seconds: number): string {
  return seconds < 120 ? `${seconds}s` : `${Math.round(seconds / 60)}m`
}

/** One line per failure, one column per product; `-` where a failure cannot happen. */
export function tableOf(cells: readonly Cell[], products: readonly string[]): string {
  const failures = [...new Set(cells.map(({ failure }) => failure))]
  const rows = failures.map((failure) => [
    `${failure.name} (${failure.scope})`,
    ...products.map((product) => {
      const cell = cells.find((one) => one.failure === failure && one.product === product)
      return cell ? cellText(cell) : '-'
    }),
  ])
  const table = [['failure', ...products], ...rows]
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)))
  return table
    .map((row) =>
      row
        .map((text, column) => text.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
