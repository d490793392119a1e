import type { Add } from './finding.ts'
import type { Series } from './series.ts'

const FACTORS = [0.01, 0.1, 10, 100]
const REACH = 3

/**
 * Whole bars displaced by 10 or 100 either way: all four prices lie within a factor of √10, less the local movement, of
 * a decimal shift of the prices around, and the prices around agree with each other. Answers the places displaced.
 */
export function checkDecimals(series: Series, add: Add): Uint8Array {
  const displaced = new Uint8Array(series.count)
  for (let i = 0; i < series.count; i += 1) {
    const level = levelAround(series, i, displaced)
    if (level === null) continue
    const factor = FACTORS.find((candidate) => within(series, i, level * candidate))
    if (factor === undefined) continue
    displaced[i] = 1
    const observed = series.close[i]! * series.factor[i]!
    const explanation = `all four prices are ${factor} times those around`
    add({
      code: 'decimal_shift',
      severity: 'error',
      index: series.rows[i]!,
      field: 'bar',
      observed,
      expected: observed / factor,
      score: null,
      confidence: 1,
      explanation,
    })
  }
  return displaced
}

/** Median close of up to three bars on each side, or null where the two sides differ by more than a quarter. */
function levelAround({ close, count }: Series, i: number, displaced: Uint8Array): number | null {
  const side = (step: number): number => {
    const values: number[] = []
    for (let j = i + step; j >= 0 && j < count && values.length < REACH; j += step)
      if (displaced[j] === 0) values.push(close[j]!)
    return values.length === 0 ? NaN : values.sort((a, b) => a - b)[values.length >> 1]!
  }
  const [before, after] = [side(-1), side(1)]
  if (Number.isNaN(before)) return after
  if (Number.isNaN(after)) return before
  return Math.abs(Math.log(before / after)) < 0.25 ? Math.sqrt(before * after) : null
}

function within({ open, high, low, close }: Series, i: number, level: number): boolean {
  return [open, high, low, close].every((price) => Math.abs(Math.log(price[i]! / level)) < 0.35)
}
