/**
 * A number rounded to `decimals` places, so that it prints short. Halves round up.
 *
 * @example roundTo(0.87456, 4) // 0.8746
 */
export function roundTo(value: number, decimals: number): number {
  const power = 10 ** decimals
  return Math.round(value * power) / power
}
