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

const SHARE = 0.995
const FEWEST = 200
/** Largest first: the steps exchanges use. */
const STEPS = [100, 10, 1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10].flatMap((power) => [
  5 * power,
  2.5 * power,
  power,
])

/** The largest usual step that 99.5% of the prices are multiples of; null where there is none or too few prices. */
export function findTickSize(prices: readonly number[]): number | null {
  if (prices.length < FEWEST) return null
  const allowed = (1 - SHARE) * prices.length
  const fits = (step: number): boolean => {
    let off = 0
    for (const price of prices) {
      if (!isMultiple(price, step)) off += 1
      if (off > allowed) return false
    }
    return true
  }
  return STEPS.find(fits) ?? null
}
