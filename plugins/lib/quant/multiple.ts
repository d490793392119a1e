/** Steps of a price grid that doubles can tell apart: beyond so many to the price every number looks like a multiple. */
const MOST_STEPS = 1e10

/**
 * Whether a price is a multiple of a step, as far as doubles can tell: within a millionth of a step, and
 * of what a price loses when it is multiplied and divided on its way. A price smaller than the step is none.
 *
 * @example isMultiple(0.3, 0.1) // true; isMultiple(1e-9, 0.01) // false
 */
export function isMultiple(price: number, step: number): boolean {
  const steps = Math.abs(price / step)
  const nearest = Math.round(steps)
  if (nearest === 0) return steps === 0
  return steps < MOST_STEPS && Math.abs(steps - nearest) < 1e-6 + 1e-12 * steps
}
