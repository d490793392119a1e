import { roundWritten } from '../lib/quant/rounding.ts'
import { findTickSize, isMultiple } from '../lib/quant/tick-size.ts'
import { type Bars, PRICES } from './bar-input.ts'
import type { AddFinding, Code, Field } from './finding-codes.ts'

/** Allows for rounding of prices that were sent as text. */
const TOLERANCE = 1e-9

/**
 * Reports impossible rows: a missing price, a price at or below zero, a high below the low, an open or close outside the
 * range, a negative volume. A row gets the first price rule that applies, and the volume rule in addition. Returns 1 for
 * each usable row and 0 for the others; a negative volume alone leaves a row usable.
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
    if (volume < 0) report('negative_volume', 'volume', -volume, 'the volume is below zero')
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
    const negated = -bars[below][index]!
    const expected = negated > 0 ? negated : guess(bars, index, below)
    return report('nonpositive_price', below, expected, `${below} is ${bars[below][index]}, not above zero`)
  }
  const slack = TOLERANCE * Math.max(Math.abs(high), Math.abs(low))
  if (high < low - slack) return report('high_lt_low', 'high', low, `high ${high} is below low ${low}`)
  const inside = (price: number): number => Math.min(Math.max(price, low), high)
  if (open > high + slack || open < low - slack) {
    const before = bars.close[index - 1] ?? NaN
    const expected = inside(Number.isNaN(before) ? open : before)
    return report('open_outside_range', 'open', expected, `open ${open} is outside the range ${low} to ${high}`)
  }
  if (close > high + slack || close < low - slack) {
    const after = bars.open[index + 1] ?? NaN
    const expected = inside(Number.isNaN(after) ? close : after)
    report('close_outside_range', 'close', expected, `close ${close} is outside the range ${low} to ${high}`)
  }
}

/** Guesses a price: the previous close, the next open, or an end of the body. Null if those are missing too. */
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

/** The tick size of a series. */
export interface Ticks {
  /** Null if there is none, or too few prices to be sure of one. */
  readonly tick: number | null
  /** The step that prices hardly fall below: the tick, or what looks like one among fewer prices. 0 if there is none. */
  readonly least: number
}

/** As few prices show a step that is good enough to excuse moves of it. */
const MIN_PRICES = 12
/** Among more, a step that 99.5% of the prices do not share is none. */
const MAX_FEW = 200

/** Reports prices that are off the tick size of the series, at most one per row. Returns the tick size. */
export function checkTick(bars: Bars, rows: Int32Array, add: AddFinding): Ticks {
  const prices = PRICES.flatMap((field) => Array.from(rows, (row) => bars[field][row]!))
  const step = findTickSize(prices)
  if (step === null)
    return { tick: null, least: (prices.length < MAX_FEW ? findTickSize(prices, MIN_PRICES) : null) ?? 0 }
  for (const index of rows) {
    const field = PRICES.find((name) => !isMultiple(bars[name][index]!, step))
    if (!field) continue
    const observed = bars[field][index]!
    const expected = roundWritten(Math.round(observed / step) * step)
    const explanation = `${observed} is not a multiple of ${step}, unlike 99.5% of the prices`
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
  return { tick: step, least: step }
}
