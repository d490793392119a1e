import { isMultiple } from '../lib/quant/multiple.ts'
import { type Bars, PRICES } from './bars.ts'
import type { Add } from './finding.ts'

const SHARE = 0.995
const FEWEST = 200
/** Largest first: the steps exchanges use. */
const STEPS = [100, 10, 1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10].flatMap((power) => [
  5 * power,
  2.5 * power,
  power,
])

/** The largest usual step that 99.5% of the prices are multiples of; null where there is none or too few prices. */
export function findTick(prices: readonly number[]): number | null {
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

/** Prices off the series' own grid, one finding a row. Answers the grid. */
export function checkTick(bars: Bars, rows: Int32Array, add: Add): number | null {
  const prices = PRICES.flatMap((field) => Array.from(rows, (row) => bars[field][row]!))
  const step = findTick(prices)
  if (step === null) return null
  for (const index of rows) {
    const field = PRICES.find((name) => !isMultiple(bars[name][index]!, step))
    if (!field) continue
    const observed = bars[field][index]!
    const expected = Number((Math.round(observed / step) * step).toPrecision(12))
    const explanation = `${observed} is no multiple of ${step}, as 99.5% of the prices are`
    add({
      code: 'off_tick',
      severity: 'info',
      index,
      field,
      observed,
      expected,
      score: null,
      confidence: 0.9,
      explanation,
    })
  }
  return step
}
