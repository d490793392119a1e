import { findTickSize, isMultiple } from '../lib/quant/tick-size.ts'
import { type Bars, PRICES } from './bar-input.ts'
import type { AddFinding, Code, Field } from './finding-codes.ts'

/** Rounding of prices sent as text must not make a bar impossible. */
const TOLERANCE = 1e-9

/**
 * Rows that cannot be: a price missing, zero or below, a range upside down, open or close outside it, volume below zero.
 * Each row gets the first that holds of the price rules, and the volume rule besides. Answers which rows can be used.
 */
export function checkImpossible(bars: Bars, allowNegative: boolean, add: AddFinding): Uint8Array {
  const usable = new Uint8Array(bars.count).fill(1)
  for (let index = 0; index < bars.count; index += 1) {
    const report = (code: Code, field: Field, expected: number | null, explanation: string): void => {
      if (code !== 'negative_volume') usable[index] = 0
      const value = field === 'bar' || field === 'timestamp' ? NaN : (bars[field]?.[index] ?? NaN)
      const observed = Number.isNaN(value) ? null : value
      add({ code, severity: 'error', index, field, observed, expected, score: null, confidence: 1, explanation })
    }
    const volume = bars.volume?.[index] ?? NaN
    if (volume < 0) report('negative_volume', 'volume', -volume, 'volume below zero')
    checkPrices(bars, index, allowNegative, report)
  }
  return usable
}

type Report = (code: Code, field: Field, expected: number | null, explanation: string) => void

function checkPrices(bars: Bars, index: number, allowNegative: boolean, report: Report): void {
  const missing = PRICES.find((field) => Number.isNaN(bars[field][index]!))
  if (missing) return report('missing_value', missing, guess(bars, index, missing), `${missing} is not a number`)
  const [open, high, low, close] = PRICES.map((field) => bars[field][index]!) as [number, number, number, number]
  const below = allowNegative ? undefined : PRICES.find((field) => bars[field][index]! <= 0)
  if (below) {
    const turned = -bars[below][index]!
    const expected = turned > 0 ? turned : guess(bars, index, below)
    return report('nonpositive_price', below, expected, `${below} is ${bars[below][index]}, not above zero`)
  }
  const slack = TOLERANCE * Math.max(Math.abs(high), Math.abs(low))
  if (high < low - slack) return report('high_lt_low', 'high', low, `high ${high} below low ${low}`)
  const inside = (price: number): number => Math.min(Math.max(price, low), high)
  if (open > high + slack || open < low - slack) {
    const before = bars.close[index - 1] ?? NaN
    const expected = inside(Number.isNaN(before) ? open : before)
    return report('open_outside_range', 'open', expected, `open ${open} outside ${low} to ${high}`)
  }
  if (close > high + slack || close < low - slack) {
    const after = bars.open[index + 1] ?? NaN
    const expected = inside(Number.isNaN(after) ? close : after)
    report('close_outside_range', 'close', expected, `close ${close} outside ${low} to ${high}`)
  }
}

/** A price from its neighbours: the close before, the open after, or the end of the body. Null where they are missing too. */
function guess(bars: Bars, index: number, field: (typeof PRICES)[number]): number | null {
  const { open, close } = bars
  const value = {
    open: close[index - 1] ?? NaN,
    close: open[index + 1] ?? NaN,
    high: Math.max(open[index]!, close[index]!),
    low: Math.min(open[index]!, close[index]!),
  }[field]
  return value > 0 ? value : null
}

/** Prices off the series' own grid, one finding a row. Answers the grid. */
export function checkTick(bars: Bars, rows: Int32Array, add: AddFinding): number | null {
  const prices = PRICES.flatMap((field) => Array.from(rows, (row) => bars[field][row]!))
  const step = findTickSize(prices)
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
