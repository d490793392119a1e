/** Powers of ten, which take longer to compute than all else of a rounding. */
const POWERS: readonly number[] = Array.from({ length: 16 }, (_, decimals) => 10 ** decimals)

/**
 * A number rounded to `decimals` places, so that it prints short. Halves round up.
 *
 * @example roundTo(0.87456, 4) // 0.8746
 */
export function roundTo(value: number, decimals: number): number {
  const power = POWERS[decimals] ?? 10 ** decimals
  return Math.round(value * power) / power
}
