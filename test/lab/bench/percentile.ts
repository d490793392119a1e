/** The value below which a share of the values lie, for waiting times. */

/**
 * Returns the value below which `share` of the values lie; NaN if there are none.
 *
 * @example percentile([3, 1, 2], 0.5) // 2
 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}
