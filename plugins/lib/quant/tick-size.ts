/** With more steps below a price than this, floating-point numbers are too coarse and every price looks like a multiple. */
const MAX_STEPS = 1e10

/**
 * Whether a price is a multiple of a step, within a millionth of a step plus the rounding error of a price that was
 * multiplied and divided. A price smaller than half a step is a multiple only if it is 0.
 *
 * @example isMultiple(0.3, 0.1) // true; isMultiple(1e-9, 0.01) // false
 */
export function isMultiple(price: number, step: number): boolean {
  const steps = Math.abs(price / step)
  const nearest = Math.round(steps)
  if (nearest === 0) return steps === 0
  return steps < MAX_STEPS && Math.abs(steps - nearest) < 1e-6 + 1e-12 * steps
}

const SHARE = 0.995
const MIN_PRICES = 200
/** The steps that exchanges use, largest first. */
const STEPS = [100, 10, 1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10].flatMap((power) => [
  5 * power,
  2.5 * power,
  power,
])

/**
 * The tick size of a series: the largest step in use at exchanges of which 99.5% of the prices are multiples. Null if
 * there is no such step, or for fewer than `least` prices.
 *
 * @example findTickSize(Array.from({ length: 200 }, (_, i) => 100 + i * 0.05)) // 0.05
 */
export function findTickSize(prices: readonly number[], least = MIN_PRICES): number | null {
  if (prices.length < least) return null
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
