/** Tables that the scripts print. */

/**
 * Formats rows of cells in columns of equal width, two spaces apart. Columns are aligned to the right, but for those whose
 * numbers are in `left`.
 *
 * @example textTable([['call', 'µs'], ['402', '32']]) // 'call  µs\n402   32'
 */
export function textTable(rows: readonly (readonly string[])[], left: readonly number[] = [0]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const pad = (cell: string, at: number): string =>
    left.includes(at) ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)
  return rows.map((row) => row.map(pad).join('  ').trimEnd()).join('\n')
}
